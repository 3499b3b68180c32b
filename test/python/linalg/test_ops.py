# ruff: noqa: E501 (IR text)
"""Each llm op, lowered by its meaning, against NumPy in float64.

Both compute in float32 at worst, so outputs agree to a few units in the last
place times the length of the longest sum (64): 1e-5 relative to values near 1.
Narrow results are compared after rounding, one step apart at most.
"""

import math

import ml_dtypes
import numpy as np
import pytest
from support.execute import Array, Batch, Cache, Executable

BF16 = ml_dtypes.bfloat16
F8 = ml_dtypes.float8_e4m3fn


def run(body: str, signature: str, results: str, *inputs: Array | Batch | Cache) -> list[Array]:
    text = f"func.func @step({signature}) -> ({results}) {{\n{body}\n}}"
    return Executable(text)(*inputs)


def check(have: Array, want: Array, tol: float = 1e-5) -> None:
    assert have.shape == want.shape
    np.testing.assert_allclose(have.astype(np.float64), want, rtol=tol, atol=tol)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def normal(rng: np.random.Generator, *shape: int, dtype: type = np.float32) -> Array:
    return rng.standard_normal(shape).astype(dtype)


erf = np.vectorize(math.erf)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {
    "identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "silu": lambda x: x * sigmoid(x),
    "gelu": lambda x: x * 0.5 * (1 + erf(x / np.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "gelu_quick": lambda x: x * sigmoid(1.702 * x),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
}


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_activation(kind: str, rng: np.random.Generator) -> None:
    x = normal(rng, 3, 8) * 3
    body = f"""%y = llm.activation {kind} %x : tensor<?x8xf32> -> tensor<?x8xf32>
    return %y : tensor<?x8xf32>"""
    (y,) = run(body, "%x: tensor<?x8xf32>", "tensor<?x8xf32>", x)
    check(y, ACTIVATIONS[kind](x.astype(np.float64)))


@pytest.mark.parametrize(("kind", "dims"), [("sum", [1]), ("mean", [1]), ("max", [1]), ("mean", [0, 1])])
def test_reduce(kind: str, dims: list[int], rng: np.random.Generator) -> None:
    x = normal(rng, 5, 8)
    shape = "1x1" if 0 in dims else "?x1"
    names = ", ".join(map(str, dims))
    body = f"""%y = llm.reduce {kind} %x {{dims = array<i64: {names}>}} : tensor<?x8xf32> -> tensor<{shape}xf32>
    return %y : tensor<{shape}xf32>"""
    (y,) = run(body, "%x: tensor<?x8xf32>", f"tensor<{shape}xf32>", x)
    check(y, getattr(np, kind)(x.astype(np.float64), axis=tuple(dims), keepdims=True))


def test_broadcast(rng: np.random.Generator) -> None:
    g, c = normal(rng, 8), normal(rng, 3, 1)
    body = """%i = arith.constant 0 : index
    %t = tensor.dim %c, %i : tensor<?x1xf32>
    %a = llm.broadcast %g sizes(%t) : tensor<8xf32> -> tensor<?x8xf32>
    %b = llm.broadcast %c : tensor<?x1xf32> -> tensor<?x8xf32>
    %y = arith.addf %a, %b : tensor<?x8xf32>
    return %y : tensor<?x8xf32>"""
    (y,) = run(body, "%g: tensor<8xf32>, %c: tensor<?x1xf32>", "tensor<?x8xf32>", g, c)
    check(y, g + c.astype(np.float64))


def test_transpose(rng: np.random.Generator) -> None:
    x = normal(rng, 3, 2, 4)
    body = """%y = llm.transpose %x {permutation = array<i64: 1, 2, 0>} : tensor<?x2x4xf32> -> tensor<2x4x?xf32>
    return %y : tensor<2x4x?xf32>"""
    (y,) = run(body, "%x: tensor<?x2x4xf32>", "tensor<2x4x?xf32>", x)
    check(y, x.transpose(1, 2, 0))


def test_matmul(rng: np.random.Generator) -> None:
    a, b = normal(rng, 2, 3, 8), normal(rng, 2, 8, 5)
    body = """%y = llm.matmul %a, %b : tensor<2x?x8xf32>, tensor<2x8x?xf32> -> tensor<2x?x?xf32>
    return %y : tensor<2x?x?xf32>"""
    signature = "%a: tensor<2x?x8xf32>, %b: tensor<2x8x?xf32>"
    (y,) = run(body, signature, "tensor<2x?x?xf32>", a, b)
    check(y, a.astype(np.float64) @ b)


def test_embedding_converts(rng: np.random.Generator) -> None:
    table, ids = normal(rng, 6, 4, dtype=BF16), np.array([5, 0, 5], np.int32)
    body = """%y = llm.embedding %i, %w : tensor<?xi32>, tensor<6x4xbf16> -> tensor<?x4xf32>
    return %y : tensor<?x4xf32>"""
    (y,) = run(body, "%i: tensor<?xi32>, %w: tensor<6x4xbf16>", "tensor<?x4xf32>", ids, table)
    check(y, table.astype(np.float64)[ids], 0)


def test_gather_rows(rng: np.random.Generator) -> None:
    x, rows = normal(rng, 5, 2, 4), np.array([4, 1], np.int32)
    body = """%y = llm.gather_rows %x, %r : tensor<?x2x4xf32>, tensor<?xi32> -> tensor<?x2x4xf32>
    return %y : tensor<?x2x4xf32>"""
    signature = "%x: tensor<?x2x4xf32>, %r: tensor<?xi32>"
    (y,) = run(body, signature, "tensor<?x2x4xf32>", x, rows)
    check(y, x[rows], 0)


def test_linear_accumulates_in_f32(rng: np.random.Generator) -> None:
    x, w, b = normal(rng, 3, 64, dtype=BF16), normal(rng, 5, 64, dtype=BF16), normal(rng, 5)
    body = """%y = llm.linear %x, %w bias(%b) : tensor<?x64xbf16>, tensor<5x64xbf16>, tensor<5xf32> -> tensor<?x5xf32>
    return %y : tensor<?x5xf32>"""
    signature = "%x: tensor<?x64xbf16>, %w: tensor<5x64xbf16>, %b: tensor<5xf32>"
    (y,) = run(body, signature, "tensor<?x5xf32>", x, w, b)
    check(y, x.astype(np.float64) @ w.astype(np.float64).T + b)


@pytest.mark.parametrize("shape", [(3, 8), (3, 2, 8)])
def test_rms_norm(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    x, g = normal(rng, *shape), normal(rng, 8, dtype=BF16)
    type = "tensor<" + "x".join(["?", *map(str, shape[1:])]) + "xf32>"
    body = f"""%y = llm.rms_norm %x, %g {{eps = 1.0e-2 : f64}} : {type}, tensor<8xbf16> -> {type}
    return %y : {type}"""
    (y,) = run(body, f"%x: {type}, %g: tensor<8xbf16>", type, x, g)
    x64 = x.astype(np.float64)
    check(y, x64 / np.sqrt((x64**2).mean(-1, keepdims=True) + 1e-2) * g.astype(np.float64))


def test_layer_norm(rng: np.random.Generator) -> None:
    x, g, b = normal(rng, 3, 8) + 2, normal(rng, 8), normal(rng, 8)
    body = """%y = llm.layer_norm %x gamma(%g) beta(%b) {eps = 1.0e-2 : f64} : tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<?x8xf32>
    return %y : tensor<?x8xf32>"""
    signature = "%x: tensor<?x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>"
    (y,) = run(body, signature, "tensor<?x8xf32>", x, g, b)
    x64 = x.astype(np.float64)
    d = x64 - x64.mean(-1, keepdims=True)
    check(y, d / np.sqrt((d**2).mean(-1, keepdims=True) + 1e-2) * g + b)


def test_rope_table() -> None:
    positions, freq = np.array([0, 3, 100], np.int32), np.array([1.0, 0.1], np.float32)
    body = """%c, %s = llm.rope_table %p, %f {attention_scaling = 0.5 : f64} : tensor<?xi32>, tensor<2xf32> -> tensor<?x2xf32>
    return %c, %s : tensor<?x2xf32>, tensor<?x2xf32>"""
    signature = "%p: tensor<?xi32>, %f: tensor<2xf32>"
    c, s = run(body, signature, "tensor<?x2xf32>, tensor<?x2xf32>", positions, freq)
    angle = np.outer(positions, freq)
    check(c, np.cos(angle) * 0.5)
    check(s, np.sin(angle) * 0.5)


@pytest.mark.parametrize("style", ["half", "interleaved"])
def test_rope_partial(style: str, rng: np.random.Generator) -> None:
    x, angle = normal(rng, 3, 2, 10), normal(rng, 3, 4)
    cos, sin = np.cos(angle), np.sin(angle)
    body = f"""%y = llm.rope {style} %x, %c, %s : tensor<?x2x10xf32>, tensor<?x4xf32> -> tensor<?x2x10xf32>
    return %y : tensor<?x2x10xf32>"""
    signature = "%x: tensor<?x2x10xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>"
    (y,) = run(body, signature, "tensor<?x2x10xf32>", x, cos, sin)
    first, second = (slice(0, 4), slice(4, 8)) if style == "half" else (slice(0, 8, 2), slice(1, 8, 2))
    want = x.astype(np.float64)
    a, b = want[..., first].copy(), want[..., second].copy()
    want[..., first] = a * cos[:, None] - b * sin[:, None]
    want[..., second] = b * cos[:, None] + a * sin[:, None]
    check(y, want)


def test_glu(rng: np.random.Generator) -> None:
    g, u = normal(rng, 3, 8), normal(rng, 3, 8)
    body = """%y = llm.glu silu %g, %u : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
    return %y : tensor<?x8xf32>"""
    (y,) = run(body, "%g: tensor<?x8xf32>, %u: tensor<?x8xf32>", "tensor<?x8xf32>", g, u)
    check(y, g * sigmoid(g.astype(np.float64)) * u)


@pytest.mark.parametrize("layout", ["split", "interleaved"])
def test_packed_glu(layout: str, rng: np.random.Generator) -> None:
    x = normal(rng, 3, 8)
    body = f"""%y = llm.packed_glu relu {layout} %x : tensor<?x8xf32> -> tensor<?x4xf32>
    return %y : tensor<?x4xf32>"""
    (y,) = run(body, "%x: tensor<?x8xf32>", "tensor<?x4xf32>", x)
    g, u = (x[:, :4], x[:, 4:]) if layout == "split" else (x[:, ::2], x[:, 1::2])
    check(y, np.maximum(g, 0) * u)


def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    window: int = 0,
    softcap: float = 0.0,
    sinks: Array | None = None,
    slopes: Array | None = None,
) -> Array:
    """Causal attention in float64; the query rows are the last of the sequence."""
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, 1), v.repeat(group, 1)
    scores = np.einsum("ihd,jhd->hij", q, k) * 0.3
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    distance = np.arange(len(k))[None] - (np.arange(len(q))[:, None] + len(k) - len(q))
    if slopes is not None:
        scores = scores + slopes[:, None, None] * distance
    scores = np.where(distance > 0, -np.inf, scores)
    if window:
        scores = np.where(distance <= -window, -np.inf, scores)
    weights = np.exp(scores)
    total = weights.sum(-1, keepdims=True)
    if sinks is not None:
        total = total + np.exp(sinks.astype(np.float64))[:, None, None]
    return np.einsum("hij,jhd->ihd", weights / total, v)


VARIANTS = {
    "plain": "",
    "window": ", window = 3 : i64",
    "softcap": ", softcap = 2.0 : f64",
    "sinks": "",
    "alibi": "",
}


def variant(name: str, rng: np.random.Generator) -> tuple[str, dict[str, object], list[Array]]:
    """The operand's text, the reference's arguments and the extra inputs."""
    per_head = normal(rng, 4)
    if name == "sinks":
        return "sinks(%e : tensor<4xf32>) ", {"sinks": per_head}, [per_head]
    if name == "alibi":
        return "alibi(%e : tensor<4xf32>) ", {"slopes": per_head}, [per_head]
    options = {"window": {"window": 3}, "softcap": {"softcap": 2.0}}
    return "", dict(options.get(name, {})), [per_head]


@pytest.mark.parametrize("name", VARIANTS)
def test_attention(name: str, rng: np.random.Generator) -> None:
    q, k, v = normal(rng, 7, 4, 8), normal(rng, 7, 2, 8), normal(rng, 7, 2, 6)
    operand, options, extra = variant(name, rng)
    body = f"""%y = llm.attention %q, %k, %v {operand}{{scale = 0.3 : f64, causal{VARIANTS[name]}}} : tensor<?x4x8xf32>, tensor<?x2x8xf32>, tensor<?x2x6xf32> -> tensor<?x4x6xf32>
    return %y : tensor<?x4x6xf32>"""
    signature = "%q: tensor<?x4x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x6xf32>, %e: tensor<4xf32>"
    (y,) = run(body, signature, "tensor<?x4x6xf32>", q, k, v, *extra)
    check(y, attention(q, k, v, **options))  # type: ignore[arg-type]


KV = "!llm.kv<heads = 2, head_dim = 8, v_head_dim = 8, block = 4, element = bf16>"


@pytest.mark.parametrize("name", VARIANTS)
def test_append_and_paged_attention(name: str, rng: np.random.Generator) -> None:
    """A prefill, a decode and a chunk of a longer sequence in one step."""
    batch = Batch.ragged(new=[5, 1, 3], past=[0, 9, 2], block=4, blocks_per_seq=3)
    cache = Cache.zeros(1, 10, 2, 4, 8, BF16)
    history = [normal(rng, 2, n, 2, 8, dtype=BF16) for n in batch.kv_len]
    for s, n in enumerate(batch.kv_len):
        for p in range(n):
            at = batch.block_table[s, p // 4], slice(None), p % 4
            for pool, rows in zip(cache.arrays(), history[s], strict=True):
                pool[at] = rows[p]
    starts = batch.query_start
    fresh = [
        np.concatenate([h[i, h.shape[1] - n :] for h, n in zip(history, np.diff(starts), strict=True)]).astype(
            np.float32
        )
        for i in (0, 1)
    ]
    for pool in cache.arrays():  # the step itself has to store its rows
        for slot in batch.slots:
            pool[slot // 4, :, slot % 4] = np.nan
    q = normal(rng, 9, 4, 8)
    operand, options, extra = variant(name, rng)
    body = f"""%kv = llm.kv_layer %c[0] : !llm.kv_cache<1 x {KV}> -> {KV}
    llm.kv_append %k, %v, %kv, %b : tensor<?x2x8xf32>, tensor<?x2x8xf32>, {KV}
    %y = llm.paged_attention %q, %kv, %b {operand}{{scale = 0.3 : f64, causal{VARIANTS[name]}}} : tensor<?x4x8xf32>, {KV} -> tensor<?x4x8xf32>
    return %y : tensor<?x4x8xf32>"""
    signature = (
        f"%q: tensor<?x4x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x8xf32>, "
        f"%e: tensor<4xf32>, %b: !llm.batch, %c: !llm.kv_cache<1 x {KV}>"
    )
    (y,) = run(body, signature, "tensor<?x4x8xf32>", q, *fresh, *extra, batch, cache)
    want = [attention(q[starts[s] : starts[s + 1]], *history[s], **options) for s in range(3)]  # type: ignore[arg-type]
    check(y, np.concatenate(want))
    assert not any(np.isnan(pool.astype(np.float32)).any() for pool in cache.arrays())


@pytest.mark.parametrize("scoring", ["softmax", "sigmoid"])
def test_moe_route(scoring: str, rng: np.random.Generator) -> None:
    logits, bias = normal(rng, 5, 8), normal(rng, 8)
    body = f"""%w, %e = llm.moe_route %l bias(%b : tensor<8xf32>) {{top_k = 3 : i64, scoring = "{scoring}", renormalize, scale = 2.0 : f64}} : tensor<?x8xf32> -> tensor<?x3xf32>, tensor<?x3xi32>
    return %w, %e : tensor<?x3xf32>, tensor<?x3xi32>"""
    signature = "%l: tensor<?x8xf32>, %b: tensor<8xf32>"
    w, e = run(body, signature, "tensor<?x3xf32>, tensor<?x3xi32>", logits, bias)
    x = logits.astype(np.float64)
    scores = sigmoid(x) if scoring == "sigmoid" else np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    chosen = np.argsort(-(scores + bias), axis=-1)[:, :3]
    np.testing.assert_array_equal(e, chosen)
    weights = np.take_along_axis(scores, chosen, -1)
    check(w, 2 * weights / weights.sum(-1, keepdims=True))


def test_moe_mlp(rng: np.random.Generator) -> None:
    x, w = normal(rng, 3, 4), normal(rng, 3, 2)
    e = np.array([[0, 2], [1, 0], [2, 1]], np.int32)
    gate_up, down = normal(rng, 3, 12, 4), normal(rng, 3, 4, 6)
    body = """%y = llm.moe_mlp silu split %x, %w, %e, %g, %d : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<3x12x4xf32>, tensor<3x4x6xf32> -> tensor<?x4xf32>
    return %y : tensor<?x4xf32>"""
    signature = (
        "%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %g: tensor<3x12x4xf32>, %d: tensor<3x4x6xf32>"
    )
    (y,) = run(body, signature, "tensor<?x4xf32>", x, w, e, gate_up, down)
    want = np.zeros((3, 4))
    for t in range(3):
        for k in range(2):
            h = gate_up[e[t, k]].astype(np.float64) @ x[t]
            want[t] += w[t, k] * (down[e[t, k]] @ (h[:6] * sigmoid(h[:6]) * h[6:]))
    check(y, want)


@pytest.mark.parametrize("dtype", [F8, ml_dtypes.float8_e5m2, np.int8])
def test_quantize_saturates(dtype: type, rng: np.random.Generator) -> None:
    name = {F8: "f8E4M3FN", ml_dtypes.float8_e5m2: "f8E5M2", np.int8: "i8"}[dtype]
    x = normal(rng, 4, 16) * np.float32(10.0) ** rng.integers(-4, 7, (4, 16)).astype(np.float32)
    s = np.array([[0.5], [2], [1], [3]], np.float32)
    body = f"""%y = llm.quantize %x, %s : tensor<?x16xf32>, tensor<?x1xf32> -> tensor<?x16x{name}>
    return %y : tensor<?x16x{name}>"""
    signature = "%x: tensor<?x16xf32>, %s: tensor<?x1xf32>"
    (y,) = run(body, signature, f"tensor<?x16x{name}>", x, s)
    info = ml_dtypes.iinfo(dtype) if dtype is np.int8 else ml_dtypes.finfo(dtype)
    want = np.clip(x / s, float(info.min), float(info.max))
    want = np.rint(want) if dtype is np.int8 else want
    np.testing.assert_array_equal(y.astype(np.float32), want.astype(dtype).astype(np.float32))


def test_dynamic_scale(rng: np.random.Generator) -> None:
    x = normal(rng, 3, 8)
    body = """%y = llm.dynamic_scale %x {group = 4 : i64, limit = 448.0 : f64} : tensor<?x8xf32> -> tensor<?x2xf32>
    return %y : tensor<?x2xf32>"""
    (y,) = run(body, "%x: tensor<?x8xf32>", "tensor<?x2xf32>", x)
    check(y, np.abs(x).reshape(3, 2, 4).max(-1) / 448)


def test_a_row_of_zeros_has_a_scale_to_divide_by() -> None:
    body = """%s = llm.dynamic_scale %x {group = 0 : i64, limit = 448.0 : f64} : tensor<?x8xf32> -> tensor<?x1xf32>
    %y = llm.quantize %x, %s : tensor<?x8xf32>, tensor<?x1xf32> -> tensor<?x8xf8E4M3FN>
    return %y : tensor<?x8xf8E4M3FN>"""
    (y,) = run(body, "%x: tensor<?x8xf32>", "tensor<?x8xf8E4M3FN>", np.zeros((2, 8), np.float32))
    np.testing.assert_array_equal(y.astype(np.float32), 0.0)


def test_scaled_linear_of_f8(rng: np.random.Generator) -> None:
    """Every f8 pattern but NaN occurs in the weight."""
    every = np.array([b for b in range(256) if b & 0x7F != 0x7F] + [0, 0], np.uint8)
    w = every.view(F8).reshape(4, 64)
    x, ws, xs = normal(rng, 3, 64).astype(F8), np.float32(2) ** -rng.integers(4, 9, (4, 1)), normal(rng, 3, 1)
    ws = ws.astype(np.float32)
    body = """%y = llm.scaled_linear %x, %w weight_scale(%ws : tensor<4x1xf32>) input_scale(%xs : tensor<?x1xf32>) : tensor<?x64xf8E4M3FN>, tensor<4x64xf8E4M3FN> -> tensor<?x4xf32>
    return %y : tensor<?x4xf32>"""
    signature = "%x: tensor<?x64xf8E4M3FN>, %w: tensor<4x64xf8E4M3FN>, %ws: tensor<4x1xf32>, %xs: tensor<?x1xf32>"
    (y,) = run(body, signature, "tensor<?x4xf32>", x, w, ws, xs)
    check(y, (x.astype(np.float64) * xs) @ (w.astype(np.float64) * ws).T, 1e-4)


def test_collective_of_one_rank(rng: np.random.Generator) -> None:
    x = normal(rng, 3, 8)
    body = """%y = llm.all_reduce %x {ranks = 1 : i64} : tensor<?x8xf32> -> tensor<?x8xf32>
    return %y : tensor<?x8xf32>"""
    (y,) = run(body, "%x: tensor<?x8xf32>", "tensor<?x8xf32>", x)
    check(y, x, 0)
