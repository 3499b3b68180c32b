"""Host linears of codes and scales against float64 products of the dequantized operands."""

# ruff: noqa: E501 (IR text)

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.execute import Array
from support.host import HostKernels

from llmc.compiler.quantization.codes import CodeFormat, quantize_rows
from llmc.compiler.targets import find_target

F8 = ml_dtypes.float8_e4m3fn
ROWS = [1, 2, 3, 13, 50]


def every_code(type: str, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Codes of which every finite pattern occurs."""
    if type == "f8E4M3FN":
        patterns = np.array([b for b in range(256) if b & 0x7F != 0x7F], np.uint8).view(F8)
    else:
        low, high = (-128, 128) if type == "i8" else (-8, 8)
        patterns = np.arange(low, high, dtype=np.int8)
    codes = np.resize(patterns, shape[0] * shape[1])
    rng.shuffle(codes)
    return codes.reshape(shape)


def linear(type: str, n: int, k: int, groups: int, inputs: str, target: str) -> HostKernels:
    scale = "input_scale(%xs : tensor<?x1xf32>) " if inputs == "f8E4M3FN" else ""
    own = ", %xs: tensor<?x1xf32>" if scale else ""
    types = f"tensor<?x{k}x{inputs}>, tensor<{n}x{k}x{type}>, tensor<{n}x{groups}xf32>, tensor<{n}xf32>"
    types += ", tensor<?x1xf32>" if scale else ""
    extra = ", %xs" if scale else ""
    return HostKernels(
        f"""
llm.parameter @w : tensor<{n}x{k}x{type}> from #llm.codes<#llm.source<"w">, to = {type}, group = {k // groups}>
llm.parameter @s : tensor<{n}x{groups}xf32> from #llm.scales<#llm.source<"w">, to = {type}, group = {k // groups}>
llm.parameter @b : tensor<{n}xf32> from #llm.source<"b">
llm.kernel @k(%x: tensor<?x{k}x{inputs}>, %w: tensor<{n}x{k}x{type}>, %s: tensor<{n}x{groups}xf32>, %b: tensor<{n}xf32>{own}) -> tensor<?x{n}xf32> attributes {{anchor = "linear"}} {{
  %y = llm.scaled_linear %x, %w weight_scale(%s : tensor<{n}x{groups}xf32>) {scale}bias(%b : tensor<{n}xf32>) : tensor<?x{k}x{inputs}>, tensor<{n}x{k}x{type}> -> tensor<?x{n}xf32>
  llm.yield %y : tensor<?x{n}xf32>
}}
func.func @step(%x: tensor<?x{k}x{inputs}>{own}) -> tensor<?x{n}xf32> {{
  %w = llm.weight @w : tensor<{n}x{k}x{type}>
  %s = llm.weight @s : tensor<{n}x{groups}xf32>
  %b = llm.weight @b : tensor<{n}xf32>
  %y = llm.launch @k(%x, %w, %s, %b{extra}) : ({types}) -> tensor<?x{n}xf32>
  return %y : tensor<?x{n}xf32>
}}""",
        find_target(target),
    )


@pytest.mark.parametrize("target", ["host", "x86-64-v3"])
@pytest.mark.parametrize(
    ("type", "inputs", "n", "k", "groups"),
    [
        ("f8E4M3FN", "f8E4M3FN", 64, 192, 1),
        ("f8E4M3FN", "f8E4M3FN", 75, 91, 1),
        ("f8E4M3FN", "f8E4M3FN", 75, 192, 3),
        ("f8E4M3FN", "f32", 75, 91, 1),
        ("i8", "f32", 75, 91, 1),
        ("i8", "f32", 64, 192, 3),
        ("i4", "f32", 75, 90, 1),
        ("i4", "f32", 64, 192, 3),
    ],
)
def test_linear(type: str, inputs: str, n: int, k: int, groups: int, target: str) -> None:
    """Products of exact codes: float32 sums of k <= 192 terms err by k units in the last place of
    the sum of magnitudes at most."""
    rng = np.random.default_rng(k + n)
    kernels = linear(type, n, k, groups, inputs, target)
    w = every_code(type, (n, k), rng)
    scales = rng.uniform(0.001, 0.01, (n, groups)).astype(np.float32)
    bias = rng.standard_normal(n).astype(np.float32)
    for rows in ROWS:
        x = rng.standard_normal((rows, k)).astype(np.float32)
        given: list[Array] = [x, w, scales, bias]
        left = x.astype(np.float64)
        if inputs == "f8E4M3FN":
            codes, x_scales = quantize_rows(x, CodeFormat(inputs, 0))
            given = [codes, w, scales, bias, x_scales]
            left = codes.astype(np.float64) * x_scales
        right = w.astype(np.float64) * np.repeat(scales.astype(np.float64), k // groups, axis=1)
        have = kernels.run("k", *given, rows=rows)[0]
        bound = (np.abs(left) @ np.abs(right).T + np.abs(bias)) * k * 2.0**-23
        assert (np.abs(have - (left @ right.T + bias)) <= bound).all()


@pytest.mark.parametrize(("type", "n", "k", "groups"), [("i4", 75, 90, 1), ("i4", 64, 192, 3), ("i8", 64, 192, 3)])
def test_zero_points(type: str, n: int, k: int, groups: int) -> None:
    """As test_linear, with what is subtracted from the codes of each group."""
    of_w, of_s, of_z = f"tensor<{n}x{k}x{type}>", f"tensor<{n}x{groups}xf32>", f"tensor<{n}x{groups}xi8>"
    of_x, of_y = f"tensor<?x{k}xf32>", f"tensor<?x{n}xf32>"
    arguments = f'#llm.source<"w">, to = {type}, group = {k // groups}'
    kernels = HostKernels(
        f"""
llm.parameter @w : {of_w} from #llm.codes<{arguments}, zeros = true>
llm.parameter @s : {of_s} from #llm.scales<{arguments}, zeros = true>
llm.parameter @z : {of_z} from #llm.zeros<{arguments}>
llm.kernel @k(%x: {of_x}, %w: {of_w}, %s: {of_s}, %z: {of_z}) -> {of_y} attributes {{anchor = "linear"}} {{
  %y = llm.scaled_linear %x, %w weight_scale(%s : {of_s}) weight_zero(%z : {of_z}) : {of_x}, {of_w} -> {of_y}
  llm.yield %y : {of_y}
}}
func.func @step(%x: {of_x}) -> {of_y} {{
  %w = llm.weight @w : {of_w}
  %s = llm.weight @s : {of_s}
  %z = llm.weight @z : {of_z}
  %y = llm.launch @k(%x, %w, %s, %z) : ({of_x}, {of_w}, {of_s}, {of_z}) -> {of_y}
  return %y : {of_y}
}}""",
        find_target("host"),
    )
    rng = np.random.default_rng(k + n)
    w = every_code(type, (n, k), rng)
    zeros = every_code(type, (n, groups), rng)
    scales = rng.uniform(0.001, 0.01, (n, groups)).astype(np.float32)
    exact = w.astype(np.float64) - np.repeat(zeros.astype(np.float64), k // groups, axis=1)
    exact *= np.repeat(scales.astype(np.float64), k // groups, axis=1)
    for rows in ROWS:
        x = rng.standard_normal((rows, k)).astype(np.float32)
        have = kernels.run("k", x, w, scales, zeros, rows=rows)[0]
        bound = (np.abs(x).astype(np.float64) @ np.abs(exact).T) * k * 2.0**-23
        assert (np.abs(have - x.astype(np.float64) @ exact.T) <= bound).all()


def test_a_row_with_nan_stays_its_own() -> None:
    rng = np.random.default_rng(3)
    kernels = linear("f8E4M3FN", 64, 64, 1, "f8E4M3FN", "host")
    w = every_code("f8E4M3FN", (64, 64), rng)
    x = rng.standard_normal((13, 64)).astype(F8)
    x[5, 7] = np.nan
    ones = np.ones((13, 1), np.float32)
    y = kernels.run("k", x, w, np.ones((64, 1), np.float32), np.zeros(64, np.float32), ones, rows=13)[0]
    assert np.isnan(y[5]).all()
    assert np.isfinite(np.delete(y, 5, axis=0)).all()


def test_rows_are_quantized_where_they_are_made() -> None:
    """A norm with codes and scales as further results; zeros and NaN in some rows."""
    kernels = HostKernels("""
llm.kernel @k(%x: tensor<?x75xf32>) -> (tensor<?x1xf32>, tensor<?x75xf8E4M3FN>) attributes {anchor = "norm"} {
  %n = llm.rms_norm %x {eps = 1.0e-5 : f64} : tensor<?x75xf32> -> tensor<?x75xf32>
  %s = llm.dynamic_scale %n {group = 0 : i64, limit = 448.0 : f64} : tensor<?x75xf32> -> tensor<?x1xf32>
  %q = llm.quantize %n, %s : tensor<?x75xf32>, tensor<?x1xf32> -> tensor<?x75xf8E4M3FN>
  llm.yield %s, %q : tensor<?x1xf32>, tensor<?x75xf8E4M3FN>
}
func.func @step(%x: tensor<?x75xf32>) -> (tensor<?x1xf32>, tensor<?x75xf8E4M3FN>) {
  %y:2 = llm.launch @k(%x) : (tensor<?x75xf32>) -> (tensor<?x1xf32>, tensor<?x75xf8E4M3FN>)
  return %y#0, %y#1 : tensor<?x1xf32>, tensor<?x75xf8E4M3FN>
}""")
    x = np.random.default_rng(4).standard_normal((20, 75)).astype(np.float32)
    x[3] = 0
    x[7, 1] = np.nan
    scales, codes = kernels.run("k", x, rows=20)
    wide = x.astype(np.float64)
    normed = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5)
    assert np.isnan(codes[7].astype(np.float32)).all()
    assert (codes[3].astype(np.float32) == 0).all()
    assert scales[3] == np.float32(2.0**-126)
    good = np.delete(np.arange(20), 7)
    np.testing.assert_allclose(scales[good, 0], np.maximum(np.abs(normed[good]).max(1) / 448, 2.0**-126), rtol=1e-5)
    # Half a unit of the narrow type, of which a code near 448 has 3 bits behind the leading one.
    found = codes[good].astype(np.float64) * scales[good]
    assert (np.abs(found - normed[good]) <= np.abs(normed[good]) * 2.0**-4 * 1.001 + scales[good] * 2.0**-10).all()
