"""A small model at every stage of the first three phases, and weights for each stage."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from mlir import ir
from mlir.passmanager import PassManager

from llmc.compiler.recipes import Source, Transpose, parse_recipe
from llmc.dialects import register
from llmc.frontends import import_checkpoint
from support.execute import DTYPES, Array, Cache
from support.frontend_models import save_config

RAISE = "llm-pipeline-raise"
BATCH = "llm-pipeline-batch{block-size=4}"
OPTIMIZE = "llm-pipeline-optimize{weights=%s activations=%s kv=%s glu-block=1}"
FLOAT32 = OPTIMIZE % ("f32", "f32", "f32")

#: Float32 arithmetic in another order: sums of up to 96 products, two layers deep.
TOLERANCE = 1e-4


def token_ids(length: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(3, 128, length).astype(np.int32)


def import_text(folder: Path, family: str) -> str:
    """The dense module of a random configuration."""
    return str(import_checkpoint(save_config(folder, family)).module)


def run_passes(text: str, pipeline: str) -> str:
    """The module after a pipeline, given as the inside of builtin.module(...)."""
    with register(ir.Context()), ir.Location.unknown():
        module = ir.Module.parse(text)
        PassManager.parse(f"builtin.module({pipeline})").run(module.operation)
        return str(module)


class RandomCheckpoint:
    """Random tensors under the names and shapes that a dense module reads."""

    def __init__(self, dense: str, seed: int = 0):
        random = np.random.default_rng(seed)
        self._tensors: dict[str, Array] = {}
        for _, shape, _, recipe in _parameters(dense):
            parsed = parse_recipe(recipe)
            if isinstance(parsed, Transpose):
                parsed, shape = parsed.part, shape[::-1]
            assert isinstance(parsed, Source)
            values = random.standard_normal(shape).astype(np.float32)
            self._tensors[parsed.name] = 1 + 0.3 * values if len(shape) == 1 else values * shape[-1] ** -0.5

    def names(self) -> list[str]:
        return list(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._tensors[name].shape

    def read(self, name: str, rows: slice | None = None) -> Array:
        return self._tensors[name][rows or slice(None)]

    def weights(self, module: str) -> dict[str, Array]:
        """The values of all parameters of a module at any stage, made by their recipes."""
        return {
            name: parse_recipe(recipe).read(self, 0, shape[0]).astype(DTYPES[element])
            for name, shape, element, recipe in _parameters(module)
        }


def _parameters(text: str) -> list[tuple[str, tuple[int, ...], str, str]]:
    """Name, shape, element type and recipe of each parameter made from the checkpoint."""
    found = []
    with register(ir.Context()), ir.Location.unknown():
        for op in ir.Module.parse(text).body.operations:
            attributes = op.operation.attributes
            if op.operation.name != "llm.parameter" or "recipe" not in attributes:
                continue
            type = ir.RankedTensorType(ir.TypeAttr(attributes["type"]).value)
            name = ir.StringAttr(attributes["sym_name"]).value
            found.append((name, tuple(type.shape), str(type.element_type), str(attributes["recipe"])))
    return found


def empty_cache(paged: str, num_blocks: int) -> Cache:
    """The cache that @step of a paged module takes."""
    text = re.search(r"!llm\.kv_cache<(.*?>)>", paged)
    assert text
    layers: list[tuple[Any, ...]] = []
    layer = re.compile(
        r"(\d+) x !llm\.kv<heads = (\d+), head_dim = (\d+), v_head_dim = (\d+), block = (\d+), element = (\w+)>"
    )
    for match in layer.finditer(text[1]):
        count, heads, key, value, block = map(int, match.groups()[:5])
        for _ in range(count):
            layers.append(tuple(np.zeros((num_blocks, heads, block, size), DTYPES[match[6]]) for size in (key, value)))
    return Cache(layers)
