"""Codes and scales of weights: the arithmetic, the recipes, and the way into weights.safetensors."""

import io

import ml_dtypes
import numpy as np
import pytest
import safetensors
from support.engine_files import DictSource

from llmc.compiler import weights as module
from llmc.compiler.dtypes import BY_NAME
from llmc.compiler.quantization.codes import LIMITS, CodeFormat, quantize_rows
from llmc.compiler.recipe_error import RecipeError
from llmc.compiler.recipes import parse_recipe
from llmc.compiler.weights import Weight, total_bytes, write_weights
from llmc.errors import ModelError

RNG = np.random.default_rng(5)
W = RNG.standard_normal((36, 64)).astype(np.float32)
SOURCE = DictSource({"w": W, "v": W[::-1].copy(), "g": W[0]})


@pytest.mark.parametrize("type", LIMITS)
@pytest.mark.parametrize("group", [0, 16])
def test_codes_are_the_nearest(type, group):
    """Against every code there is, in float64."""
    codes, scales = quantize_rows(W, CodeFormat(type, group))
    assert scales.dtype == np.float32
    assert scales.shape == (36, 64 // group if group else 1)
    every = (
        np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
        if type == "f8E4M3FN"
        else np.arange(-LIMITS[type], LIMITS[type] + 1)
    )
    every = every[np.isfinite(every)]
    wide = np.repeat(scales.astype(np.float64), 64 // scales.shape[1], axis=1)
    error = np.abs(codes.astype(np.float64) * wide - W)
    best = np.abs(every * wide[:, :, None] - W[:, :, None]).min(axis=2)
    # The quotient is rounded to float32 before it is rounded to a code.
    assert (error <= best + np.abs(W) * 2.0**-22).all()
    assert np.abs(codes.astype(np.float64)).max() == LIMITS[type]


def test_zeros_have_a_scale():
    codes, scales = quantize_rows(np.zeros((2, 8), np.float32), CodeFormat("f8E4M3FN", 0))
    assert (codes.astype(np.float32) == 0).all()
    assert (scales == np.float32(2.0**-126)).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(bad):
    rows = W.astype(ml_dtypes.bfloat16)
    rows[3, 4] = bad
    with pytest.raises(ModelError, match=r"infinite or NaN values: 1 of 2304 values .*--exclude"):
        quantize_rows(rows, CodeFormat("i8", 0))


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ('#llm.codes<#llm.source<"w">, to = i3, group = 0>', "codes of type i3: expected one of f8E4M3FN, i8, i4"),
        ('#llm.codes<#llm.source<"w">, to = i8, group = 48>', "groups of 48 do not divide the 64 columns"),
        ('#llm.scales<#llm.source<"g">, to = i8, group = 0>', "only matrices are quantized"),
        ('#llm.codes<#llm.source<"w">, group = 0>', "expected 'to ='"),
    ],
)
def test_recipes_that_do_not_fit(recipe, message):
    with pytest.raises(RecipeError, match=message):
        parse_recipe(recipe).shape(SOURCE)


MERGED = '#llm.interleave<[#llm.source<"w">, #llm.source<"v">], dim = 0, block = 4>'
PANELS = "#llm.panels<rows = 8, group = 1>"


def pair(type, group, columns, dtype="f8e4m3", layout=PANELS):
    arguments = f"{MERGED}, to = {type}, group = {group}"
    return [
        Weight("scale", BY_NAME["f32"], (72, columns), recipe=f"#llm.scales<{arguments}>", layout=PANELS),
        Weight("gamma", BY_NAME["bf16"], (64,), recipe='#llm.source<"g">'),
        Weight("codes", BY_NAME[dtype], (72, 64), recipe=f"#llm.codes<{arguments}>", layout=layout),
        Weight("other", BY_NAME["f32"], (64,), recipe='#llm.source<"g">'),
    ]


class CountingSource(DictSource):
    """Counts the rows that are read of each matrix."""

    def __init__(self, tensors):
        super().__init__(tensors)
        self.rows = {}

    def read(self, name, rows=None):
        values = super().read(name, rows)
        self.rows[name] = self.rows.get(name, 0) + len(values)
        return values


def stored(weights, source=SOURCE):
    buffer = io.BytesIO()
    write_weights(weights, source, buffer.write)
    assert len(buffer.getvalue()) == total_bytes(weights)
    return dict(safetensors.deserialize(buffer.getvalue())), buffer.getvalue()


@pytest.mark.parametrize("chunk", [8 * 4 * 64, 16 << 20])
def test_each_row_is_read_once_for_codes_and_scales(monkeypatch, chunk):
    monkeypatch.setattr(module, "CHUNK_BYTES", chunk)
    source = CountingSource({"w": W, "v": W[::-1].copy(), "g": W[0]})
    tensors, data = stored(pair("f8E4M3FN", 0, 1), source)
    assert source.rows == {"w": 36, "v": 36, "g": 128}
    merged = parse_recipe(MERGED).read(SOURCE, 0, 72)
    codes, scales = quantize_rows(merged, CodeFormat("f8E4M3FN", 0))
    assert bytes(tensors["codes"]["data"]) == codes.reshape(9, 8, 64).transpose(0, 2, 1).tobytes()
    assert bytes(tensors["scale"]["data"]) == scales.tobytes()
    monkeypatch.undo()
    assert stored(pair("f8E4M3FN", 0, 1))[1] == data


def test_two_4_bit_codes_share_a_byte():
    layout = "#llm.panels<rows = 8, group = 2>"
    tensors, _ = stored(pair("i4", 16, 4, "u8", layout))
    codes, scales = quantize_rows(parse_recipe(MERGED).read(SOURCE, 0, 72), CodeFormat("i4", 16))
    assert tensors["codes"]["shape"] == [9, 32, 8]
    packed = (
        np.frombuffer(bytes(tensors["codes"]["data"]), np.uint8).reshape(9, 32, 8).transpose(0, 2, 1).reshape(72, 32)
    )
    low, high = (packed << 4).view(np.int8) >> 4, packed.view(np.int8) >> 4
    np.testing.assert_array_equal(np.stack([low, high], axis=2).reshape(72, 64), codes)
    found = np.frombuffer(bytes(tensors["scale"]["data"]), np.float32).reshape(9, 4, 8)
    np.testing.assert_array_equal(found.transpose(0, 2, 1).reshape(72, 4), scales)
