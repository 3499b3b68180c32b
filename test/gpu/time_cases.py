"""Times the compiled kernels beside torch and the ceilings of the same run.

    python test/gpu/time_cases.py FOLDER [--out FILE.json] [--only WORD] [--tokens 1 64 4096]

Each measurement is a CUDA graph of launches that rotate over copies of the operands (more than a
gigabyte in all, so that no weight stays in L2), replayed in turns with torch's graph of the same
products; medians. `floor` is the larger of bytes over the read ceiling and operations over the
matrix ceiling, both measured first. Run `run_cases.py` on the same folder before: figures of wrong
kernels mean nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch
from ceilings import measure
from driver import Kernel, graph_of, interleaved
from linear_references import Linear
from references import Attention
from run_cases import bind
from support.report import header
from torch.nn.attention import SDPBackend, sdpa_kernel

TOKENS = [1, 8, 16, 32, 64, 128, 512, 1024, 4096, 8192]
COPIES_BYTES = 1.2e9
REPEATS = {"decode": 16, "prefill": 4}
"""Launches of one attention problem in a graph: what it takes in a chain."""


def time_linear(folder: Path, case: dict[str, Any], tokens: int, max_tokens: int, cache: dict[str, Kernel]) -> dict:
    """Beside torch.matmul, or for 8-bit floats torch._scaled_mm with scales of rows: with float32 sums, as ours
    are, and with those of the tensor core (`torch_fast`)."""
    n, k, element_bytes = case["n"], case["k"], 1 if case.get("float8") else 2
    copies = max(2, min(64, int(COPIES_BYTES / (n * k * element_bytes)) + 1)) if tokens <= 512 else 2
    problems = [Linear(case, tokens, max_tokens) for _ in range(copies)]
    ours = [launch for p in problems for launch in bind(folder, case, p, cache)]
    outs = torch.empty(tokens, n, device="cuda", dtype=torch.bfloat16)
    graphs = {"seconds": graph_of(ours)}
    if element_bytes == 2:
        graphs["torch_seconds"] = graph_of(
            [lambda p=p: torch.matmul(p.x[:tokens], p.w.t(), out=outs) for p in problems]
        )
    else:

        def scaled(p: Linear, fast: bool) -> Any:
            of_w, of_x = p.scales[0].t(), p.scales[1][:tokens]
            return lambda: torch._scaled_mm(
                p.x[:tokens], p.w.t(), of_x, of_w, out_dtype=outs.dtype, use_fast_accum=fast, out=outs
            )

        graphs["torch_seconds"] = graph_of([scaled(p, False) for p in problems])
        graphs["torch_fast_seconds"] = graph_of([scaled(p, True) for p in problems])
    times = interleaved(graphs)
    return {
        **{name: seconds / copies for name, seconds in times.items()},
        "bytes": (n * k + tokens * k) * element_bytes + tokens * n * 2,
        "flops": 2 * tokens * n * k,
        "float8": element_bytes == 1,
    }


def time_attention(folder: Path, case: dict[str, Any], name: str, lengths: list[tuple[int, int]], cache: dict) -> dict:
    """lengths: (query tokens, cached tokens before) of each sequence."""
    tokens = sum(q for q, _ in lengths)
    problem = Attention(case, tokens, 0, sequences=lengths)
    launches = bind(folder, case, problem, cache)
    repeats = REPEATS[name.split()[0]]
    graphs = {"llmc": graph_of(launches * repeats)}
    if all(before == 0 for _, before in lengths):
        graphs |= torch_prefill(problem, repeats)
    times = {name: seconds / repeats for name, seconds in interleaved(graphs).items()}
    peers = {f"{name}_seconds": seconds for name, seconds in times.items() if name != "llmc"}
    if peers:
        peers["torch_seconds"] = min(peers.values())
    pairs = sum(q * before + q * (q + 1) // 2 for q, before in lengths)
    return {
        "seconds": times["llmc"],
        "bytes": sum(q + before for q, before in lengths) * case["kv_heads"] * case["dim"] * 4,
        "flops": 4 * pairs * case["heads"] * case["dim"],
        **peers,
    }


def torch_prefill(problem: Attention, repeats: int) -> dict[str, torch.cuda.CUDAGraph]:
    """torch's causal attention by each back end, on dense keys and values: a call for each length of prompt,
    whose sequences are its batch; cuDNN with the keys of a group shared too."""
    group = problem.case["heads"] // problem.case["kv_heads"]
    batches: dict[int, list[list[torch.Tensor]]] = {}
    row = 0
    for (count, _), pair in zip(problem.sequences, problem.dense, strict=True):
        one = [problem.q[row : row + count], pair["k"], pair["v"]]
        batches.setdefault(count, []).append([part.transpose(0, 1) for part in one])
        row += count
    shared = [[torch.stack(parts).contiguous() for parts in zip(*batch, strict=True)] for batch in batches.values()]
    whole = [[q, *(x.repeat_interleave(group, dim=1) for x in kv)] for q, *kv in shared]
    peers = {
        "flash": (SDPBackend.FLASH_ATTENTION, whole, False),
        "cudnn": (SDPBackend.CUDNN_ATTENTION, whole, False),
        "cudnn_gqa": (SDPBackend.CUDNN_ATTENTION, shared, True),
    }
    attention, graphs = torch.nn.functional.scaled_dot_product_attention, {}
    for name, (backend, operands, gqa) in peers.items():
        with sdpa_kernel(backend):
            calls = [lambda x=x, gqa=gqa: attention(*x, is_causal=True, enable_gqa=gqa) for x in operands]
            graphs[name] = graph_of(calls * repeats)
    return graphs


ATTENTION = {
    "decode 1 x 32k": [(1, 32767)],
    "decode 64 x 2k": [(1, 2047)] * 64,
    "decode 256 x 512": [(1, 511)] * 256,
    "decode 16 to 16k": [(1, 16 << (i % 11)) for i in range(32)],
    "decode 1 x 512": [(1, 511)],
    "decode 1 x 2k": [(1, 2047)],
    "decode 8 x 8k": [(1, 8191)] * 8,
    "decode 16 x 4k": [(1, 4095)] * 16,
    "decode 128 x 129": [(1, 128)] * 128,
    "decode 16 x 4 of 2k": [(4, 2044)] * 16,
    "prefill 2k": [(2048, 0)],
    "prefill 8k": [(8192, 0)],
    "prefill 32k": [(32768, 0)],
    "prefill 4 x 2k": [(2048, 0)] * 4,
    "prefill 16 x 512": [(512, 0)] * 16,
    "prefill 100 to 4000": [(100 + 260 * ((i * 7) % 16), 0) for i in range(16)],
    "prefill 2k after 6k": [(2048, 6144)],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--tokens", type=int, nargs="+", default=TOKENS, help="token counts of the linears")
    options = parser.parse_args()
    bundle = json.loads((options.folder / "cases.json").read_text())
    ceilings = measure()
    read = float(ceilings["read_bytes_per_s"])
    rates = {float8: float(ceilings[f"{'fp8' if float8 else 'bf16'}_flops_per_s"]) for float8 in (False, True)}
    print(
        f"{ceilings['device']}: read {read / 1e12:.2f} TB/s, bf16 {rates[False] / 1e12:.0f} and fp8 "
        f"{rates[True] / 1e12:.0f} TFLOP/s"
    )
    rows: list[dict[str, Any]] = []
    cache: dict[str, Kernel] = {}

    def report(case: str, what: str, row: dict[str, Any]) -> None:
        floor = max(row["bytes"] / read, row["flops"] / rates[row.get("float8", False)])
        row |= {"case": case, "what": what, "floor_seconds": floor}
        rows.append(row)
        peer = f"  torch {row['torch_seconds'] * 1e6:9.1f}" if "torch_seconds" in row else ""
        peer += f" fast {row['torch_fast_seconds'] * 1e6:9.1f}" if "torch_fast_seconds" in row else ""
        gigabytes, teraflops = row["bytes"] / row["seconds"] / 1e9, row["flops"] / row["seconds"] / 1e12
        print(
            f"{case:32s} {what:18s} {row['seconds'] * 1e6:9.1f} us{peer}  {row['floor_seconds'] / row['seconds']:5.0%}"
            f" of floor  {gigabytes:6.0f} GB/s {teraflops:5.0f} TF/s",
            flush=True,
        )

    for case in bundle["cases"]:
        if options.only not in case["name"]:
            continue
        if case["kind"] == "linear" and case["n"] * case["k"] > 2e7:
            for tokens in options.tokens:
                if tokens <= bundle["max_tokens"]:
                    report(
                        case["name"],
                        f"M={tokens}",
                        time_linear(options.folder, case, tokens, bundle["max_tokens"], cache),
                    )
        if case["kind"] == "attention" and case["heads"] == 32:
            for name, lengths in ATTENTION.items():
                report(case["name"], name, time_attention(options.folder, case, name, lengths, cache))
    if options.out:
        options.out.write_text(json.dumps({**header(), "ceilings": ceilings, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
