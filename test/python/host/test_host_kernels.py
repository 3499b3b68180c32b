"""Host kernels of every kind against their meaning (support/execute.py) on random data.

The meaning sums in another order, so results of sums of n <= 1536 terms near 1 may differ by
about 1e-5 relative; the polynomials for exp and tanh add 1e-6.
"""

# ruff: noqa: E501 (IR text)

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.execute import Array, Batch, Cache, Executable
from support.host import HostKernels

from llmc.codegen.kernel import UnsupportedKernel
from llmc.compiler.targets import find_target

BF16 = ml_dtypes.bfloat16
KV = "!llm.kv<heads = 3, head_dim = 64, v_head_dim = 64, block = 64, element = f32>"
TOKENS = [1, 3, 13, 50]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def normal(rng: np.random.Generator, *shape: int, dtype: type = np.float32) -> Array:
    return rng.standard_normal(shape).astype(dtype)


def check(have: Array, want: Array, tol: float = 2e-5) -> None:
    assert have.shape == want.shape
    np.testing.assert_allclose(have.astype(np.float64), want.astype(np.float64), rtol=tol, atol=tol)


def kernel(anchor: str, arguments: str, results: str, body: str) -> str:
    return f'llm.kernel @k({arguments}) -> ({results}) attributes {{anchor = "{anchor}"}} {{\n{body}\n}}\n'


def step(arguments: list[tuple[str, str]], results: str, weights: tuple[int, ...] = ()) -> str:
    """@step that launches @k; the arguments named by `weights` are parameters."""
    types = ", ".join(type for _, type in arguments)
    own = ", ".join(f"%{n}: {t}" for i, (n, t) in enumerate(arguments) if i not in weights)
    names = ", ".join(f"%{n}" for n, _ in arguments)
    parameters = "".join(
        f'llm.parameter @{arguments[i][0]} : {arguments[i][1]} from #llm.source<"{i}">\n' for i in weights
    )
    reads = "".join(f"  %{arguments[i][0]} = llm.weight @{arguments[i][0]} : {arguments[i][1]}\n" for i in weights)
    count = results.count("tensor<")
    values = "%r" if count == 1 else ", ".join(f"%r#{i}" for i in range(count))
    bound = "%r" if count == 1 else f"%r:{count}"
    return (
        f"{parameters}func.func @step({own}) -> ({results}) {{\n{reads}"
        f"  {bound} = llm.launch @k({names}) : ({types}) -> ({results})\n  return {values} : {results}\n}}"
    )


class Case:
    """A kernel, compiled for the host and by its meaning."""

    def __init__(
        self,
        anchor: str,
        arguments: list[tuple[str, str]],
        results: str,
        body: str,
        weights: tuple[int, ...] = (),
        target: str = "host",
    ) -> None:
        text = ", ".join(f"%{name}: {type}" for name, type in arguments)
        module = kernel(anchor, text, results, body) + step(arguments, results, weights)
        self.names = [name for name, _ in arguments]
        self.weights = weights
        self.host = HostKernels(module, find_target(target))
        self.meaning = Executable(module)

    def check(self, *operands: Array | Batch | Cache, rows: int) -> None:
        own = [o for i, o in enumerate(operands) if i not in self.weights]
        caches = [(o, o.copy()) for o in own if isinstance(o, Cache)]
        weights = {self.names[i]: operands[i] for i in self.weights}
        want = self.meaning(*own, weights=weights)  # type: ignore[arg-type]
        given = [caches[0][1].layers[0] if isinstance(o, Cache) else o for o in operands]
        have = self.host.run("k", *given, rows=rows)
        for h, w in zip(have, want, strict=True):
            check(h, w)
        for expected, written in caches:
            for h, w in zip(written.arrays(), expected.arrays(), strict=True):
                check(h, w)


def test_embedding(rng: np.random.Generator) -> None:
    body = """%e = llm.embedding %ids, %w : tensor<?xi32>, tensor<70x48xbf16> -> tensor<?x48xf32>
    %s = arith.constant dense<2.0> : tensor<1xf32>
    %c0 = arith.constant 0 : index
    %t = tensor.dim %ids, %c0 : tensor<?xi32>
    %b = llm.broadcast %s sizes(%t) : tensor<1xf32> -> tensor<?x48xf32>
    %y = arith.mulf %e, %b : tensor<?x48xf32>
    llm.yield %y : tensor<?x48xf32>"""
    case = Case("embedding", [("ids", "tensor<?xi32>"), ("w", "tensor<70x48xbf16>")], "tensor<?x48xf32>", body, (1,))
    for rows in TOKENS:
        case.check(rng.integers(0, 70, rows).astype(np.int32), normal(rng, 70, 48, dtype=BF16), rows=rows)


@pytest.mark.parametrize("op", ["rms_norm %s, %g", "layer_norm %s gamma(%g)"])
def test_norm_with_residual(op: str, rng: np.random.Generator) -> None:
    body = f"""%s = arith.addf %x, %y : tensor<?x75xf32>
    %n = llm.{op} {{eps = 1.0e-5 : f64}} : tensor<?x75xf32>, tensor<75xbf16> -> tensor<?x75xf32>
    llm.yield %n, %s : tensor<?x75xf32>, tensor<?x75xf32>"""
    rows_type = "tensor<?x75xf32>"
    case = Case(
        "norm", [("x", rows_type), ("y", rows_type), ("g", "tensor<75xbf16>")], f"{rows_type}, {rows_type}", body, (2,)
    )
    for rows in TOKENS:
        case.check(normal(rng, rows, 75), normal(rng, rows, 75), normal(rng, 75, dtype=BF16), rows=rows)


def test_norm_of_gathered_rows(rng: np.random.Generator) -> None:
    body = """%x = llm.gather_rows %h, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
    %n = llm.rms_norm %x, %g {eps = 1.0e-5 : f64} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
    llm.yield %n : tensor<?x64xf32>"""
    case = Case(
        "norm",
        [("h", "tensor<?x64xf32>"), ("rows", "tensor<?xi32>"), ("g", "tensor<64xf32>")],
        "tensor<?x64xf32>",
        body,
        (2,),
    )
    case.check(normal(rng, 9, 64), np.array([8, 0, 3], np.int32), normal(rng, 64), rows=3)


def test_rope_table(rng: np.random.Generator) -> None:
    body = """%c, %s = llm.rope_table %p, %f {attention_scaling = 1.0 : f64} : tensor<?xi32>, tensor<32xf32> -> tensor<?x32xf32>
    llm.yield %c, %s : tensor<?x32xf32>, tensor<?x32xf32>"""
    case = Case(
        "rope_table",
        [("p", "tensor<?xi32>"), ("f", "tensor<32xf32>")],
        "tensor<?x32xf32>, tensor<?x32xf32>",
        body,
        (1,),
    )
    case.check(np.array([0, 5, 100_000], np.int32), (10000.0 ** (-np.arange(32) / 32)).astype(np.float32), rows=3)


@pytest.mark.parametrize("style", ["half", "interleaved"])
def test_rope_append(style: str, rng: np.random.Generator) -> None:
    body = f"""%c0 = arith.constant 0 : index
    %t = tensor.dim %qkv, %c0 : tensor<?x960xf32>
    %q0 = tensor.extract_slice %qkv[0, 0] [%t, 576] [1, 1] : tensor<?x960xf32> to tensor<?x576xf32>
    %k0 = tensor.extract_slice %qkv[0, 576] [%t, 192] [1, 1] : tensor<?x960xf32> to tensor<?x192xf32>
    %v0 = tensor.extract_slice %qkv[0, 768] [%t, 192] [1, 1] : tensor<?x960xf32> to tensor<?x192xf32>
    %q1 = tensor.expand_shape %q0 [[0], [1, 2]] output_shape [%t, 9, 64] : tensor<?x576xf32> into tensor<?x9x64xf32>
    %k1 = tensor.expand_shape %k0 [[0], [1, 2]] output_shape [%t, 3, 64] : tensor<?x192xf32> into tensor<?x3x64xf32>
    %v1 = tensor.expand_shape %v0 [[0], [1, 2]] output_shape [%t, 3, 64] : tensor<?x192xf32> into tensor<?x3x64xf32>
    %q2 = llm.rms_norm %q1, %g {{eps = 1.0e-5 : f64}} : tensor<?x9x64xf32>, tensor<64xf32> -> tensor<?x9x64xf32>
    %q3 = llm.rope {style} %q2, %cos, %sin : tensor<?x9x64xf32>, tensor<?x32xf32> -> tensor<?x9x64xf32>
    %k2 = llm.rope {style} %k1, %cos, %sin : tensor<?x3x64xf32>, tensor<?x32xf32> -> tensor<?x3x64xf32>
    llm.kv_append %k2, %v1, %kv, %b : tensor<?x3x64xf32>, tensor<?x3x64xf32>, {KV}
    llm.yield %q3 : tensor<?x9x64xf32>"""
    arguments = [
        ("qkv", "tensor<?x960xf32>"),
        ("g", "tensor<64xf32>"),
        ("cos", "tensor<?x32xf32>"),
        ("sin", "tensor<?x32xf32>"),
        ("kv", KV),
        ("b", "!llm.batch"),
    ]
    case = Case("rope_append", arguments, "tensor<?x9x64xf32>", body)
    batch = Batch.ragged([5, 1], [0, 130], 64, 3)
    angle = normal(rng, 6, 32)
    cache = Cache.zeros(1, 7, 3, 64, 64)
    case.check(normal(rng, 6, 960), normal(rng, 64), np.cos(angle), np.sin(angle), cache, batch, rows=6)


@pytest.mark.parametrize("target", ["host", "x86-64-v3"])
@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
def test_linear(dtype: str, target: str, rng: np.random.Generator) -> None:
    body = f"""%y = llm.linear %x, %w bias(%b) : tensor<?x90xf32>, tensor<75x90x{dtype}>, tensor<75xf32> -> tensor<?x75xf32>
    %a = llm.activation gelu_tanh %y : tensor<?x75xf32> -> tensor<?x75xf32>
    %s = arith.constant dense<0.5> : tensor<?x75xf32>
    %r = arith.addf %a, %h : tensor<?x75xf32>
    llm.yield %r : tensor<?x75xf32>""".replace("    %s = arith.constant dense<0.5> : tensor<?x75xf32>\n", "")
    arguments = [
        ("x", "tensor<?x90xf32>"),
        ("w", f"tensor<75x90x{dtype}>"),
        ("b", "tensor<75xf32>"),
        ("h", "tensor<?x75xf32>"),
    ]
    case = Case("linear", arguments, "tensor<?x75xf32>", body, (1, 2), target)
    numpy_type = {"bf16": BF16, "f16": np.float16, "f32": np.float32}[dtype]
    for rows in TOKENS:
        w = (normal(rng, 75, 90) / 9).astype(numpy_type)
        case.check(normal(rng, rows, 90), w, normal(rng, 75), normal(rng, rows, 75), rows=rows)


@pytest.mark.parametrize("layout", ["split", "interleaved", "interleaved8", "interleaved16"])
def test_linear_with_glu(layout: str, rng: np.random.Generator) -> None:
    name, block = (layout[:11], int(layout[11:] or 1)) if layout != "split" else (layout, 1)
    body = f"""%y = llm.linear %x, %w : tensor<?x64xf32>, tensor<192x64xbf16> -> tensor<?x192xf32>
    %a = llm.packed_glu silu {name} %y {{block = {block} : i64}} : tensor<?x192xf32> -> tensor<?x96xf32>
    llm.yield %a : tensor<?x96xf32>"""
    arguments = [("x", "tensor<?x64xf32>"), ("w", "tensor<192x64xbf16>")]
    case = Case("linear", arguments, "tensor<?x96xf32>", body, (1,))
    for rows in TOKENS:
        case.check(normal(rng, rows, 64), (normal(rng, 192, 64) / 8).astype(BF16), rows=rows)


def test_tied_embedding_reads_panels(rng: np.random.Generator) -> None:
    text = """llm.parameter @w : tensor<75x64xbf16> from #llm.source<"w">
llm.kernel @embed(%i: tensor<?xi32>, %w: tensor<75x64xbf16>) -> tensor<?x64xf32> attributes {anchor = "embedding"} {
  %e = llm.embedding %i, %w : tensor<?xi32>, tensor<75x64xbf16> -> tensor<?x64xf32>
  llm.yield %e : tensor<?x64xf32>
}
llm.kernel @head(%x: tensor<?x64xf32>, %w: tensor<75x64xbf16>) -> tensor<?x75xf32> attributes {anchor = "linear"} {
  %y = llm.linear %x, %w : tensor<?x64xf32>, tensor<75x64xbf16> -> tensor<?x75xf32>
  llm.yield %y : tensor<?x75xf32>
}
func.func @step(%tokens: tensor<?xi32>) -> tensor<?x75xf32> {
  %w = llm.weight @w : tensor<75x64xbf16>
  %h = llm.launch @embed(%tokens, %w) : (tensor<?xi32>, tensor<75x64xbf16>) -> tensor<?x64xf32>
  %y = llm.launch @head(%h, %w) : (tensor<?x64xf32>, tensor<75x64xbf16>) -> tensor<?x75xf32>
  return %y : tensor<?x75xf32>
}"""
    host = HostKernels(text)
    ids, w = np.array([74, 0, 33], np.int32), normal(rng, 75, 64, dtype=BF16)
    (h,) = host.run("embed", ids, w, rows=3)
    check(h, w[ids], 0)
    (y,) = host.run("head", h, w, rows=3)
    check(y, Executable(text)(ids, weights={"w": w})[0])


VARIANTS = {
    "plain": ("", ""),
    "window": (", window = 70 : i64", ""),
    "softcap": (", softcap = 2.0 : f64", ""),
    "sinks": ("", "sinks(%e : tensor<9xf32>) "),
    "alibi": ("", "alibi(%e : tensor<9xf32>) "),
}


@pytest.mark.parametrize("target", ["host", "x86-64-v3"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_attention(variant: str, target: str, rng: np.random.Generator) -> None:
    """Blocks of 16 rows cross the borders of a prefill, a decode and a chunk."""
    attributes, operand = VARIANTS[variant]
    body = f"""%c0 = arith.constant 0 : index
    %t = tensor.dim %q, %c0 : tensor<?x576xf32>
    %q1 = tensor.expand_shape %q [[0], [1, 2]] output_shape [%t, 9, 64] : tensor<?x576xf32> into tensor<?x9x64xf32>
    %o = llm.paged_attention %q1, %kv, %b {operand}{{scale = 0.125 : f64, causal{attributes}}} : tensor<?x9x64xf32>, {KV} -> tensor<?x9x64xf32>
    %y = tensor.collapse_shape %o [[0], [1, 2]] : tensor<?x9x64xf32> into tensor<?x576xf32>
    llm.yield %y : tensor<?x576xf32>"""
    arguments = [("q", "tensor<?x576xf32>"), ("kv", KV), ("b", "!llm.batch"), ("e", "tensor<9xf32>")]
    case = Case("attention", arguments, "tensor<?x576xf32>", body, target=target)
    batch = Batch.ragged([37, 1, 20, 1], [0, 129, 110, 0], 64, 3)
    cache = Cache.zeros(1, 13, 3, 64, 64)
    for pool in cache.arrays():
        pool[...] = np.nan  # blocks and slots that nobody wrote
        for s, length in enumerate(batch.kv_len):
            for p in range(length):
                pool[batch.block_table[s, p // 64], :, p % 64] = normal(rng, 3, 64)
    case.check(normal(rng, 59, 576), cache, batch, normal(rng, 9), rows=59)


def test_equal_inputs_give_equal_bytes() -> None:
    text = kernel(
        "elementwise",
        "%x: tensor<?x8xf32>",
        "tensor<?x8xf32>",
        "%y = llm.activation silu %x : tensor<?x8xf32> -> tensor<?x8xf32>\nllm.yield %y : tensor<?x8xf32>",
    )
    codes = {HostKernels(text).kernels["k"].variants[0].launches[0].entry.code.data for _ in range(2)}
    assert len(codes) == 1


def test_refuses_a_kernel_with_its_reason() -> None:
    odd = KV.replace("64, v_head_dim = 64", "21, v_head_dim = 21")
    body = f"""%o = llm.paged_attention %q, %kv, %b {{scale = 0.125 : f64, causal}} : tensor<?x9x21xf32>, {odd} -> tensor<?x9x21xf32>
    llm.yield %o : tensor<?x9x21xf32>"""
    text = kernel("attention", f"%q: tensor<?x9x21xf32>, %kv: {odd}, %b: !llm.batch", "tensor<?x9x21xf32>", body)
    with pytest.raises(UnsupportedKernel, match="even head sizes"):
        HostKernels(text)
