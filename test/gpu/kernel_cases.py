"""The kernels that the GPU tests run: `llm.kernel` text by kind and shape.

Shapes are those of SmolLM2-135M and Llama-3.1-8B, and small odd ones; each case names the token
counts it runs with. `build_cases.py` compiles them where there is no GPU; `run_cases.py` runs them
where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TOKENS = [1, 7, 64, 129, 1000]
"""One row; less than a wgmma's width; exactly one tile of it; a tile and a row; many, not round."""

Case = dict[str, Any]


def _kernel(name: str, anchor: str, arguments: str, results: str, body: str) -> str:
    return (
        f'llm.kernel @{name}({arguments}) -> ({results}) attributes {{anchor = "{anchor}"}} {{\n{body}\n'
        f"  llm.yield {', '.join(f'%r{i}' for i in range(results.count('tensor<')))} : {results}\n}}\n"
    )


def embedding(vocab: int, hidden: int) -> Case:
    table, out = f"tensor<{vocab}x{hidden}xbf16>", f"tensor<?x{hidden}xf32>"
    name = f"embedding_{vocab}x{hidden}"
    body = f"  %r0 = llm.embedding %ids, %w : tensor<?xi32>, {table} -> {out}"
    text = _kernel(name, "embedding", f"%ids: tensor<?xi32>, %w: {table}", out, body)
    return {"name": name, "kind": "embedding", "vocab": vocab, "hidden": hidden, "text": text}


def norm(hidden: int, layer: bool = False) -> Case:
    rows, out, g = f"tensor<?x{hidden}xf32>", f"tensor<?x{hidden}xbf16>", f"tensor<{hidden}xf32>"
    name = f"{'layer' if layer else 'rms'}_norm_{hidden}"
    if layer:
        arguments = f"%x: {rows}, %g: {g}, %b: {g}"
        body = f"  %r0 = llm.layer_norm %x gamma(%g) beta(%b) {{eps = 1.0e-5 : f64}} : {rows}, {g}, {g} -> {out}"
    else:
        arguments = f"%x: {rows}, %g: {g}"
        body = f"  %r0 = llm.rms_norm %x, %g {{eps = 1.0e-5 : f64}} : {rows}, {g} -> {out}"
    return {
        "name": name, "kind": "layer_norm" if layer else "rms_norm", "hidden": hidden,
        "text": _kernel(name, "norm", arguments, out, body),
    }  # fmt: skip


_SCALES = "tensor<?x1xf32>"
_CODES = "f8E4M3FN"


def _quantize(source: str, rows: str, hidden: int) -> str:
    """Codes and scales of the rows of a value, as %r0 and %r1."""
    return (
        f"  %r1 = llm.dynamic_scale {source} {{group = 0 : i64, limit = 448.0 : f64}} : {rows} -> {_SCALES}\n"
        f"  %r0 = llm.quantize {source}, %r1 : {rows}, {_SCALES} -> tensor<?x{hidden}x{_CODES}>"
    )


def quantized_norm(hidden: int) -> Case:
    rows, wide, g = f"tensor<?x{hidden}xf32>", f"tensor<?x{hidden}xbf16>", f"tensor<{hidden}xf32>"
    name = f"quantized_norm_{hidden}"
    body = f"  %0 = llm.rms_norm %x, %g {{eps = 1.0e-5 : f64}} : {rows}, {g} -> {wide}\n"
    results = f"tensor<?x{hidden}x{_CODES}>, {_SCALES}"
    text = _kernel(name, "norm", f"%x: {rows}, %g: {g}", results, body + _quantize("%0", wide, hidden))
    return {"name": name, "kind": "quantized_norm", "hidden": hidden, "text": text}


def quantize(hidden: int, heads: int = 0) -> Case:
    """heads: of the result of an attention, [T, heads, hidden / heads]; 0: of rows as they are."""
    rows, name = f"tensor<?x{hidden}xbf16>", f"quantize_{hidden}" + (f"_{heads}_heads" if heads else "")
    results = f"tensor<?x{hidden}x{_CODES}>, {_SCALES}"
    if heads:
        source = f"tensor<?x{heads}x{hidden // heads}xbf16>"
        body = f"  %0 = tensor.collapse_shape %x [[0], [1, 2]] : {source} into {rows}\n"
        text = _kernel(name, "elementwise", f"%x: {source}", results, body + _quantize("%0", rows, hidden))
    else:
        text = _kernel(name, "elementwise", f"%x: {rows}", results, _quantize("%x", rows, hidden))
    return {"name": name, "kind": "quantize", "hidden": hidden, "text": text}


def rope_table(half: int) -> Case:
    out = f"tensor<?x{half}xf32>"
    name = f"rope_table_{half}"
    body = (
        f"  %r0, %r1 = llm.rope_table %p, %f {{attention_scaling = 1.0 : f64}} : "
        f"tensor<?xi32>, tensor<{half}xf32> -> {out}"
    )
    text = _kernel(name, "rope_table", f"%p: tensor<?xi32>, %f: tensor<{half}xf32>", f"{out}, {out}", body)
    return {"name": name, "kind": "rope_table", "half": half, "text": text}


def _kv(heads: int, dim: int) -> str:
    return f"!llm.kv<heads = {heads}, head_dim = {dim}, v_head_dim = {dim}, block = 64, element = bf16>"


def rope_append(heads: int, kv_heads: int, dim: int) -> Case:
    q_columns, kv_columns = heads * dim, kv_heads * dim
    packed = f"tensor<?x{q_columns + 2 * kv_columns}xbf16>"
    kv, half = _kv(kv_heads, dim), f"tensor<?x{dim // 2}xf32>"
    lines = ["  %c0 = arith.constant 0 : index", f"  %t = tensor.dim %qkv, %c0 : {packed}"]
    offset = 0
    for letter, count in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
        columns = count * dim
        flat, split = f"tensor<?x{columns}xbf16>", f"tensor<?x{count}x{dim}xbf16>"
        lines += [
            f"  %{letter}0 = tensor.extract_slice %qkv[0, {offset}] [%t, {columns}] [1, 1] : {packed} to {flat}",
            f"  %{letter}1 = tensor.expand_shape %{letter}0 [[0], [1, 2]] output_shape [%t, {count}, {dim}] : "
            f"{flat} into {split}",
        ]
        offset += columns
    q, k = f"tensor<?x{heads}x{dim}xbf16>", f"tensor<?x{kv_heads}x{dim}xbf16>"
    lines += [
        f"  %r0 = llm.rope half %q1, %cos, %sin : {q}, {half} -> {q}",
        f"  %k2 = llm.rope half %k1, %cos, %sin : {k}, {half} -> {k}",
        f"  llm.kv_append %k2, %v1, %kv, %batch : {k}, {k}, {kv}",
    ]
    name = f"rope_append_{heads}x{kv_heads}x{dim}"
    arguments = f"%qkv: {packed}, %cos: {half}, %sin: {half}, %kv: {kv}, %batch: !llm.batch"
    return {
        "name": name, "kind": "rope_append", "heads": heads, "kv_heads": kv_heads, "dim": dim,
        "text": _kernel(name, "rope_append", arguments, q, "\n".join(lines)),
    }  # fmt: skip


def linear(n: int, k: int, epilogue: str = "bf16", float8: bool = False) -> Case:
    """epilogue: 'bf16', 'f32', 'bias', 'residual' (float32 sum), 'residual_in_place' (its result on the residual)
    or 'glu' (interleaved by 8). float8: 8-bit operands with a scale for each row."""
    x, w = (f"tensor<{rows}x{k}x{_CODES if float8 else 'bf16'}>" for rows in ("?", n))
    arguments = f"%x: {x}, %w: {w}"
    columns = n // 2 if epilogue == "glu" else n
    out = f"tensor<?x{columns}x{'bf16' if epilogue in ('bf16', 'bias', 'glu') else 'f32'}>"
    wide, b = f"tensor<?x{n}xf32>", f"tensor<{n}xf32>"
    biased = epilogue == "bias"
    if float8:
        of_w = f"tensor<{n}x1xf32>"
        arguments += f", %ws: {of_w}, %xs: {_SCALES}"
        scales = f" weight_scale(%ws : {of_w}) input_scale(%xs : {_SCALES})" + (f" bias(%b : {b})" if biased else "")
        multiply, types = f"llm.scaled_linear %x, %w{scales}", f"{x}, {w}"
    else:
        multiply = "llm.linear %x, %w" + (" bias(%b)" if biased else "")
        types = f"{x}, {w}" + (f", {b}" if biased else "")
    arguments += f", %b: {b}" if biased else ""
    if epilogue.startswith("residual"):
        arguments += f", %h: {out}"
        body = f"  %0 = {multiply} : {types} -> {out}\n  %r0 = arith.addf %h, %0 : {out}"
    elif epilogue == "glu":
        body = (
            f"  %0 = {multiply} : {types} -> {wide}\n"
            f"  %r0 = llm.packed_glu silu interleaved %0 {{block = 8 : i64}} : {wide} -> {out}"
        )
    else:
        body = f"  %r0 = {multiply} : {types} -> {out}"
    name = f"linear_{'f8_' if float8 else ''}{epilogue}_{n}x{k}"
    return {
        "name": name, "kind": "linear", "n": n, "k": k, "epilogue": epilogue, "float8": float8,
        "text": _kernel(name, "linear", arguments, out, body),
    }  # fmt: skip


def attention(heads: int, kv_heads: int, dim: int, window: int = 0, softcap: float = 0.0, sinks: bool = False) -> Case:
    q, kv = f"tensor<?x{heads}x{dim}xbf16>", _kv(kv_heads, dim)
    options = f"scale = {dim**-0.5} : f64, causal"
    options += f", window = {window} : i64" if window else ""
    options += f", softcap = {softcap} : f64" if softcap else ""
    name = f"attention_{heads}x{kv_heads}x{dim}" + (f"_w{window}" if window else "") + ("_cap" if softcap else "")
    name += "_sinks" if sinks else ""
    extra = f" sinks(%s : tensor<{heads}xf32>)" if sinks else ""
    body = f"  %r0 = llm.paged_attention %q, %kv, %batch{extra} {{{options}}} : {q}, {kv} -> {q}"
    arguments = f"%q: {q}, %kv: {kv}, %batch: !llm.batch" + (f", %s: tensor<{heads}xf32>" if sinks else "")
    return {
        "name": name, "kind": "attention", "heads": heads, "kv_heads": kv_heads, "dim": dim,
        "window": window, "softcap": softcap, "sinks": sinks,
        "text": _kernel(name, "attention", arguments, q, body),
    }  # fmt: skip


def sample(vocab: int) -> Case:
    logits, f32s, i32s = f"tensor<?x{vocab}xf32>", "tensor<?xf32>", "tensor<?xi32>"
    types = [logits, f32s, i32s, f32s, f32s, "tensor<?xi64>", i32s]
    arguments = ", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(types))
    operands = ", ".join(f"%a{i}" for i in range(len(types)))
    name = f"sample_{vocab}"
    body = f"  %r0 = llm.sample {operands} : ({', '.join(types)}) -> {i32s}"
    return {"name": name, "kind": "sample", "vocab": vocab, "text": _kernel(name, "sample", arguments, i32s, body)}


def all_cases() -> Iterator[Case]:
    yield embedding(1000, 100)
    yield embedding(49152, 576)
    yield norm(576)
    yield norm(4096)
    yield norm(770, layer=True)
    yield rope_table(32)
    yield rope_table(64)
    yield sample(1001)
    yield sample(49152)
    yield rope_append(9, 3, 64)
    yield rope_append(32, 8, 128)
    # SmolLM2-135M: qkv, o, gate and up, down, logits.
    yield linear(960, 576)
    yield linear(576, 576, "residual")
    yield linear(576, 576, "residual_in_place")
    yield linear(3072, 576, "glu")
    yield linear(576, 1536, "residual")
    yield linear(49152, 576, "f32")
    # Odd sizes: K with a tail, N that no tile divides.
    yield linear(1000, 520, "bias")
    yield linear(72, 264)
    # Llama-3.1-8B.
    yield linear(6144, 4096)
    yield linear(4096, 4096, "residual_in_place")
    yield linear(28672, 4096, "glu")
    yield linear(4096, 14336, "residual")
    yield linear(4096, 14336, "residual_in_place")
    yield attention(9, 3, 64)
    yield attention(32, 8, 128)
    yield attention(8, 8, 64)
    yield attention(16, 4, 128, window=100, softcap=30.0)
    yield attention(16, 2, 64, window=1000, sinks=True)
    yield attention(8, 4, 256)


def _in_f16(case: Case) -> Case:
    """The same with float16 in place of bfloat16."""
    name = f"{case['name']}_f16"
    text = case["text"].replace(f"@{case['name']}", f"@{name}").replace("bf16", "f16")
    return {**case, "name": name, "dtype": "f16", "text": text}


def float8_cases() -> Iterator[Case]:
    """Quantized rows, and linears of 8-bit floats: Llama-3.1-8B's, small ones, and odd sizes."""
    yield quantized_norm(4096)
    yield quantized_norm(576)
    yield quantize(14336)
    yield quantize(770)
    yield quantize(4096, heads=32)
    yield linear(960, 576, float8=True)
    yield linear(3072, 576, "glu", float8=True)
    yield linear(576, 1536, "residual", float8=True)
    yield linear(1000, 528, "bias", float8=True)
    yield linear(72, 272, "f32", float8=True)
    yield linear(6144, 4096, float8=True)
    yield linear(4096, 4096, "residual_in_place", float8=True)
    yield linear(28672, 4096, "glu", float8=True)
    yield linear(4096, 14336, "residual", float8=True)
    yield linear(4096, 14336, "residual_in_place", float8=True)


def hopper_cases() -> Iterator[Case]:
    """Those of sm_90's own kernels."""
    yield from all_cases()
    yield from float8_cases()


def portable_cases() -> Iterator[Case]:
    """Those of every GPU: all of the above, and shapes that only the kernels of codegen/sm80 take."""
    yield from all_cases()
    yield linear(1001, 520, "bias")
    yield attention(6, 2, 96)
    yield attention(4, 2, 80, window=70)
    yield attention(8, 1, 192)
    yield _in_f16(linear(3072, 576, "glu"))
    yield _in_f16(linear(1001, 520, "bias"))
    yield _in_f16(attention(6, 2, 96))
