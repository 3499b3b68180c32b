"""Logits of an imported graph by its meaning, and those of transformers."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from llmc.frontends import ImportedModel
from support.execute import Executable

TOKENS = 23


def weights_of(imported: ImportedModel) -> dict[str, np.ndarray]:
    """The values of the parameters, from the checkpoint."""
    values = {}
    for symbol, tensor in imported.tensors.items():
        array = np.asarray(imported.checkpoint.read(tensor), dtype=np.float32)
        values[symbol] = np.ascontiguousarray(array.T if symbol.endswith(".transposed") else array)
    return values


@functools.lru_cache(maxsize=4)
def _executable(module: str) -> Executable:
    """Checkpoints of one model differ in their weights only."""
    return Executable(module)


def logits_of(imported: ImportedModel, tokens: np.ndarray, positions: np.ndarray) -> np.ndarray:
    step = _executable(str(imported.module))
    return step(tokens.astype(np.int32), positions.astype(np.int32), weights=weights_of(imported))[0]


def reference_logits(model: Any, tokens: np.ndarray, positions: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        output = model(
            input_ids=torch.from_numpy(tokens)[None],
            position_ids=torch.from_numpy(positions)[None],
            # Without it transformers takes positions that do not start at 0 for several packed sequences.
            attention_mask=torch.ones(1, len(tokens), dtype=torch.long),
            use_cache=False,
        )
    return output.logits[0].numpy()
