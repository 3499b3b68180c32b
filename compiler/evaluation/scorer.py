"""Logits of token windows: from an engine, or from transformers as a reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from llmc.compiler.evaluation.text import Window
from llmc.errors import CompileError, EngineError, ModelError, OptionError

Logits = npt.NDArray[np.float32]

#: Bytes of logits that one call may return.
_BATCH_BYTES = 512 << 20


class Scorer(Protocol):
    """Scores windows, in order."""

    name: str
    max_length: int
    vocab_size: int

    def logits(self, windows: Sequence[Window]) -> Iterator[Logits]:
        """float32 [len(window.rows), vocab_size] of each window."""
        ...


class EngineScorer:
    """A loaded engine, teacher-forced through its paged path."""

    def __init__(self, engine: Any):
        self.engine = engine
        self.name = str(engine.path)
        self.max_length: int = engine.info["max_seq_len"]
        self.vocab_size: int = engine.info["vocab_size"]

    def logits(self, windows: Sequence[Window]) -> Iterator[Logits]:
        for batch in self._batches(windows):
            yield from self.engine.forward([w.tokens for w in batch], [w.rows for w in batch])

    def _batches(self, windows: Sequence[Window]) -> Iterator[list[Window]]:
        batch: list[Window] = []
        rows = 0
        for window in windows:
            count = len(window.rows)
            if batch and (rows + count) * self.vocab_size * 4 > _BATCH_BYTES:
                yield batch
                batch, rows = [], 0
            batch.append(window)
            rows += count
        if batch:
            yield batch


class TransformersScorer:
    """A Hugging Face folder or .gguf file in transformers; `dtype` is that of its arithmetic.

    Weights are first rounded to `weights`, the type that the engine stores them in, so that what is
    compared is the engine's arithmetic.
    """

    def __init__(self, path: Path, dtype: str = "float32", weights: str = "bfloat16"):
        import torch
        import transformers

        if not path.exists():
            raise ModelError(f"{path} does not exist: expected an engine, a Hugging Face folder or a .gguf file")
        where: dict[str, Any] = {"gguf_file": path.name} if path.suffix == ".gguf" else {}
        folder = path.parent if path.suffix == ".gguf" else path
        try:
            model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **where)
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(f"transformers cannot load {path}: {error}") from None
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(parameter.to(getattr(torch, weights)).float())
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = model.to(device=self.device, dtype=getattr(torch, dtype)).eval()
        self.name = f"transformers {transformers.__version__}, {dtype}"
        self.max_length = int(getattr(model.config, "max_position_embeddings", 1 << 30))
        self.vocab_size = int(model.config.vocab_size)

    def logits(self, windows: Sequence[Window]) -> Iterator[Logits]:
        import torch

        for window in windows:
            with torch.no_grad():
                ids = torch.tensor([window.tokens], device=self.device)
                found = self.model(ids).logits[0, window.first - 1 : len(window.tokens) - 1]
            yield found.float().cpu().numpy()


def is_engine(path: Path) -> bool:
    return path.suffix == ".llmc" or (path / "manifest.json").exists()


def check_windows(scorer: Scorer, windows: Sequence[Window]) -> None:
    """Refuses what the scorer cannot hold, and text that has nothing to predict."""
    if not windows:
        raise OptionError("the text has fewer than two tokens: nothing can be predicted")
    longest = max(len(w.tokens) for w in windows)
    if longest > scorer.max_length:
        raise OptionError(
            f"windows of {longest} tokens exceed the {scorer.max_length} of {scorer.name}: lower --window"
        )
    top = max(max(w.tokens) for w in windows)
    if top >= scorer.vocab_size:
        raise EngineError(f"the text has token {top}, {scorer.name} knows tokens 0 to {scorer.vocab_size - 1}")


def log_softmax(logits: Logits, where: str) -> npt.NDArray[np.float64]:
    """In float64. Refuses what is not finite: such a model has no quality to measure."""
    if not np.isfinite(logits).all():
        row = int(np.flatnonzero(~np.isfinite(logits).all(axis=1))[0])
        raise CompileError(f"{where}: the logits of row {row} have NaN or infinity")
    x = logits.astype(np.float64)
    x -= x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))
