"""Checkpoints in memory and small engines for the tests of the driver."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from llmc.compiler.dtypes import BY_NAME
from llmc.compiler.manifest import MANIFEST, PLAN, RECIPES, WEIGHTS, build_manifest, limits_of
from llmc.compiler.options import CompileOptions
from llmc.compiler.output import OutputFolder
from llmc.compiler.recipes import TensorSource
from llmc.compiler.weights import Weight, write_weights


class DictSource:
    """Tensors in memory with the interface of a checkpoint."""

    def __init__(self, tensors: dict[str, np.ndarray]):
        self.tensors = tensors

    def names(self) -> list[str]:
        return sorted(self.tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.tensors[name].shape

    def read(self, name: str, rows: slice | None = None) -> np.ndarray:
        return self.tensors[name] if rows is None else self.tensors[name][rows]


SMALL_WEIGHTS = [
    Weight("a", BY_NAME["bf16"], (6, 4), recipe='#llm.source<"w">', layout="#llm.panels<rows = 4, group = 2>"),
    Weight("freq", BY_NAME["f32"], (3,), value=np.array([1.0, 0.5, 0.25], np.float32)),
]
SMALL_PLAN = {
    "plan_version": 1,
    "constants": {"vocab_size": 8, "max_blocks_per_seq": 2},
    "kv_cache": {
        "block_size": 64,
        "layers": [{"heads": 1, "head_dim": 4, "v_head_dim": 4, "dtype": "f32", "window": None}],
    },
    "arena": {
        "bytes": 1024,
        "lower_bound": 960,
        "peak": 1024,
        "buffers": [
            {"name": "h0", "dtype": "f32", "shape": ["T", 4], "offset": 0, "bytes": 512, "live": [0, 1]},
            {"name": "logits", "dtype": "f32", "shape": ["R", 8], "offset": 512, "bytes": 512, "live": [1, 2]},
        ],
    },
    "inputs": [{"name": "tokens", "dtype": "i32", "shape": ["T"]}],
    "outputs": {"logits": 1},
    "code": [{"path": "kernels/host.so", "kind": "host"}],
    "kernels": [
        {"name": "linear_0", "entry": "linear_0", "code": 0, "block": [1, 1, 1], "cluster": [1, 1, 1],
         "shared_bytes": 0, "pdl": False, "registers": None, "anchor": "linear"},
    ],
    "ranges": [
        {"min_tokens": 1, "max_tokens": 2048, "launches": [
            {"kernel": 0, "grid": [["ceildiv", "T", 64], 1, 1],
             "args": [{"input": "tokens"}, {"weight": "a"}, {"buffer": 0}, {"i32": ["mul", "T", 4]},
                      {"kv": "k", "layer": 0}]},
        ]},
    ],
}  # fmt: skip


def write_small_engine(
    path: Path, source: TensorSource | None = None, weights: list[Weight] = SMALL_WEIGHTS, **model: object
) -> Path:
    """An engine with every part but no code that runs; `source` None makes a stripped one."""
    options = CompileOptions(target="x86-64-v3")
    with OutputFolder(path) as out:
        out.write("kernels/host.so", b"\x7fELF not really")
        out.write_json(PLAN, SMALL_PLAN)
        out.write_json(RECIPES, {"weights": [weight.to_json() for weight in weights]})
        hashes = None
        if source is not None:
            with out.open(WEIGHTS) as part:
                hashes = write_weights(weights, source, part.write)
        manifest = build_manifest(
            model={"architecture": "LlamaForCausalLM", "name": "small", "vocab_size": 8, "num_layers": 1,
                   "config_sha256": "0" * 64, **model},
            limits=limits_of(options, 128, 64),
            resolved=options.resolve(),
            weights=weights,
            weight_hashes=hashes,
            parts=out.part_list(),
        )  # fmt: skip
        out.write_json(MANIFEST, manifest)
        out.commit()
    return path
