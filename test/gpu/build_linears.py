"""Compiles candidate configurations of the linears of Llama-3.1 8B and 70B, to be timed against each other.

    python test/gpu/build_linears.py FOLDER [--only WORD] [--part I/N]

Needs no GPU. FOLDER receives one cubin for each candidate and linears[_I].json, which
`time_linears.py` reads. Parts may be built side by side.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernel_cases import linear
from mlir import ir

from llmc.codegen.gpu.lowering import lower
from llmc.codegen.sm90 import linear_large, linear_small
from llmc.dialects import register

SHAPES = {
    "8b_qkv": (6144, 4096, "bf16"),
    "8b_o": (4096, 4096, "residual_in_place"),
    "8b_gate_up": (28672, 4096, "glu"),
    "8b_down": (4096, 14336, "residual_in_place"),
    "8b_lm_head": (128256, 4096, "f32"),
    "70b_qkv": (10240, 8192, "bf16"),
    "70b_o": (8192, 8192, "residual_in_place"),
    "70b_gate_up": (57344, 8192, "glu"),
    "70b_down": (8192, 28672, "residual_in_place"),
    "70b_lm_head": (128256, 8192, "f32"),
}
SMALL_WIDTHS = {8: 2, 16: 2, 32: 3, 64: 4, 128: 4}
"""How many of the cheapest candidates of each width are built; of both splits where there are several."""
LARGE_TOKENS = (128, 192, 256, 384, 512, 1024, 2048, 4096, 8192, 16384)


def small_configs(n: int, k: int, gated: bool) -> Iterator[linear_small.Config]:
    for width, count in SMALL_WIDTHS.items():
        found = sorted(linear_small.candidates(n, k, width, gated), key=lambda c: linear_small.cost(c, n, k))
        best: list[linear_small.Config] = []
        for config in found:
            if count == 1 or sum(b.split == config.split for b in best) < (count + 1) // 2:
                best.append(config)
        yield from best[:count]


def large_configs(n: int) -> Iterator[tuple[linear_large.Config, list[int]]]:
    """Configurations, each with the token counts at which it is worth a measurement."""
    found: dict[linear_large.Config, list[int]] = {}
    for tokens in LARGE_TOKENS:
        best = linear_large.candidates(n, tokens)
        limit = linear_large.cost(best[0], n, tokens) * 1.12
        near = [c for c in best if linear_large.cost(c, n, tokens) <= limit][:4]
        if tokens >= 1024:
            widest = linear_large.deepest(128, 256)
            near = list(dict.fromkeys([*near[:3], widest]))
            near += [linear_large.deepest(128, 256, group) for group in (8, 32)]
            near += [linear_large.deepest(128, 128, 8)] if linear_large.deepest(128, 128) in near else []
        for config in near:
            found.setdefault(config, []).append(tokens)
    yield from found.items()


def alternatives(text: str, n: int, k: int, gated: bool) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """(label, facts, function that builds the kernel of an llm.kernel op)."""
    for config in small_configs(n, k, gated):
        label = f"t{config.tokens}_r{config.rows}_k{config.block_k}_s{config.split}"
        facts = {"family": "small", "width": config.tokens, "stages": config.stages}
        yield label, facts, lambda op, c=config: linear_small.build(op, c)
    for config, tokens in large_configs(n):
        yield (
            f"m{config.block_m}_n{config.block_n}_g{config.group}",
            {"family": "large", "width": 0, "stages": config.stages, "tokens": tokens},
            (lambda op, c=config: linear_large.build(op, c)),
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="0/1")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    part, count = (int(x) for x in options.part.split("/"))
    context = ir.Context()
    register(context)
    rows, failed = [], 0
    for name, (n, k, epilogue) in [*SHAPES.items()][part::count]:
        if options.only not in name:
            continue
        case = linear(n, k, epilogue)
        built = []
        for label, facts, build in alternatives(case["text"], n, k, epilogue == "glu"):
            with context, ir.Location.unknown():
                module = ir.Module.parse(case["text"])
                try:
                    kernel, grid, arguments = build(module.body.operations[0])
                    entry = lower(kernel, ir.StringAttr(kernel.kernel.operation.attributes["sym_name"]).value).entry
                except Exception as error:  # a candidate that does not compile is no candidate
                    print(f"{name} {label} FAILED: {type(error).__name__}: {str(error)[:300]}", flush=True)
                    failed += 1
                    continue
            file = f"{name}_{label}.cubin"
            (options.folder / file).write_bytes(entry.code.data)
            launch = {"kernel": entry.description(), "cubin": file, "grid": list(grid), "args": list(arguments)}
            built.append({"label": label, **facts, "launches": [launch]})
            print(f"{name:14s} {label:22s} {entry.registers} regs {facts['stages']} stages", flush=True)
        rows.append({**case, "shape": name, "alternatives": built})
    (options.folder / f"linears_{part}.json").write_text(json.dumps({"cases": rows}, indent=1), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
