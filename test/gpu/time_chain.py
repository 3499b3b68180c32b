"""Times the dependent chain of a layer's four linears, as a decode step runs them, beside torch and the ceilings.

    python test/gpu/build_cases.py FOLDER --only linear_
    python test/gpu/time_chain.py FOLDER [--tokens 1 8 16 64] [--out FILE.json]

A chain is qkv, o (residual in place), gate and up with GLU, down (residual in place) of Llama-3.1-8B, over the
weights of `LAYERS` layers, 436 MB each, so that nothing stays in the L2. One CUDA graph under programmatic
dependent launch, replayed in turns with torch's graph of four `torch.matmul` a layer (bf16, no GLU, no
residual); medians. o reads what qkv wrote and down what gate and up wrote; the residual stream runs through o
and down. What attention and norms would write between is bytes that stand there already, but every launch
waits for the one in front. The floor is the bytes of the weights over the read bandwidth of the same run.

First the chain of one layer is compared with float32, and with itself run launch by launch.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from ceilings import measure
from driver import Kernel, graph_of, interleaved
from references import randn, relative
from run_cases import variant_of
from support.report import header

LAYERS = 6
HIDDEN, QKV, INNER = 4096, 6144, 14336
MAX_TOKENS = 512
STEPS = {
    "linear_bf16_6144x4096": ("x", "qkv"),
    "linear_residual_in_place_4096x4096": ("qkv", "h"),
    "linear_glu_28672x4096": ("y", "inner"),
    "linear_residual_in_place_4096x14336": ("inner", "h"),
}
"""Kernel of each step: what it reads and what it writes."""


class Chain:
    """Buffers of `tokens` tokens, weights of each layer, and the launches over them."""

    def __init__(self, cases: dict[str, dict[str, Any]], tokens: int):
        self.tokens, self.cases = tokens, cases
        sizes = {"x": HIDDEN, "qkv": QKV, "y": HIDDEN, "inner": INNER}
        self.buffers = {
            name: torch.zeros(MAX_TOKENS, n, device="cuda", dtype=torch.bfloat16) for name, n in sizes.items()
        }
        for name in ("x", "y"):
            self.buffers[name][:tokens] = randn(tokens, HIDDEN, dtype=torch.bfloat16)
        self.buffers["h"] = torch.zeros(MAX_TOKENS, HIDDEN, device="cuda")
        self.weights = [
            {
                name: randn(cases[name]["n"], cases[name]["k"], dtype=torch.bfloat16) * cases[name]["k"] ** -0.5
                for name in STEPS
            }
            for _ in range(LAYERS)
        ]
        self.sizes = {"T": tokens, "R": tokens, "rows": tokens, "max_rows": MAX_TOKENS, "S": 1, "B": 1, "NB": 1}

    def launches(self, folder: Path, cache: dict[str, Kernel], layers: int) -> list[Callable[[], None]]:
        found = []
        for weights in self.weights[:layers]:
            for name, (source, result) in STEPS.items():
                operands = [self.buffers[source], weights[name], self.buffers["h"]]

                def address(argument: dict[str, Any], operands: list = operands, result: str = result) -> int:
                    if "result" in argument:
                        return self.buffers[result].data_ptr()
                    return operands[argument["operand"]].data_ptr()

                for launch in variant_of(self.cases[name], self.tokens)["launches"]:
                    file = launch["cubin"]
                    if file not in cache:
                        cache[file] = Kernel((folder / file).read_bytes(), launch["kernel"])
                    found.append(cache[file].bind(launch["grid"], launch["args"], address, self.sizes))
        return found

    def rows(self, name: str) -> torch.Tensor:
        """What the next step reads of a buffer: the first tokens x columns of it, as rows."""
        columns = {"qkv": HIDDEN}.get(name, self.buffers[name].shape[1])
        return self.buffers[name].flatten()[: self.tokens * columns].view(self.tokens, columns)

    def torch_calls(self, layers: int) -> list[Callable[[], Any]]:
        outs = [torch.empty(self.tokens, self.cases[n]["n"], device="cuda", dtype=torch.bfloat16) for n in STEPS]
        inner = outs[2].flatten()[: self.tokens * INNER].view(self.tokens, INNER)
        qkv = outs[0].flatten()[: self.tokens * HIDDEN].view(self.tokens, HIDDEN)
        found = []
        for weights in self.weights[:layers]:
            inputs = [self.rows("x") if not found else outs[3], qkv, outs[1], inner]
            for x, w, out in zip(inputs, weights.values(), outs, strict=True):
                found.append(lambda x=x, w=w, out=out: torch.matmul(x, w.t(), out=out))
        return found

    def reference(self) -> torch.Tensor:
        """The residual stream after one layer, in float32, with bf16 between the steps."""
        w = [weight.float().t() for weight in self.weights[0].values()]
        x, y = self.rows("x").float(), self.rows("y").float()
        # o's rows are the first bytes of qkv's result, whose rows are longer.
        qkv = (x @ w[0]).bfloat16().flatten()[: self.tokens * HIDDEN].view(self.tokens, HIDDEN)
        h = qkv.float() @ w[1]
        pairs = (y @ w[2]).view(self.tokens, -1, 2, 8)
        gate, up = pairs[:, :, 0].flatten(1), pairs[:, :, 1].flatten(1)
        return h + (torch.nn.functional.silu(gate) * up).bfloat16().float() @ w[3]


def check(chain: Chain, folder: Path, cache: dict[str, Kernel]) -> dict[str, Any]:
    h, calls = chain.buffers["h"], chain.launches(folder, cache, 1)
    results = []
    for wait in (True, False, False):
        h[: chain.tokens] = 0
        torch.cuda.synchronize()
        for call in calls:
            call()
            if wait:
                torch.cuda.synchronize()
        torch.cuda.synchronize()
        results.append(h[: chain.tokens].clone())
    same = all(torch.equal(results[0], r) for r in results[1:])
    error = relative(results[0], chain.reference())
    # Two roundings to bf16 stand between the steps.
    return {"tokens": chain.tokens, "error": error, "same_bits": same, "passed": same and error < 6e-3}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 8, 16, 32, 64, 128])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    cases = {c["name"]: c for c in json.loads((options.folder / "cases.json").read_text())["cases"]}
    ceilings = measure()
    read = float(ceilings["read_bytes_per_s"])
    weight_bytes = sum(cases[name]["n"] * cases[name]["k"] * 2 for name in STEPS)
    print(f"{ceilings['device']}: read {read / 1e12:.2f} TB/s; {weight_bytes / 1e6:.0f} MB of weights a layer")
    cache: dict[str, Kernel] = {}
    rows, failed = [], 0
    for tokens in options.tokens:
        chain = Chain(cases, tokens)
        row = check(chain, options.folder, cache)
        failed += not row["passed"]
        graphs = {
            "llmc": graph_of(chain.launches(options.folder, cache, LAYERS)),
            "torch": graph_of(chain.torch_calls(LAYERS)),
        }
        times = {name: seconds / LAYERS for name, seconds in interleaved(graphs, rounds=15, replays=4).items()}
        row |= {"us": times["llmc"] * 1e6, "torch_us": times["torch"] * 1e6}
        row["of_read"] = weight_bytes / read / times["llmc"]
        row["torch_of_read"] = weight_bytes / read / times["torch"]
        rows.append(row)
        print(
            f"M={tokens:<4d} {row['us']:7.1f} us a layer, {row['of_read']:.1%} of read; "
            f"torch {row['torch_us']:7.1f} us, {row['torch_of_read']:.1%}  "
            f"(error {row['error']:.2e}, same bits {row['same_bits']})",
            flush=True,
        )
        del chain, graphs
    if options.out:
        options.out.write_text(json.dumps({**header(), "ceilings": ceilings, "layers": LAYERS, "rows": rows}, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
