# ruff: noqa: E501 (IR text)
"""Host kernels at the shapes of SmolLM2-135M against the machine's ceilings, measured in the same run.

    python test/bench/host_kernels.py [--threads N] [--json FILE]

Decode (T = 1) is held against the read bandwidth of memory: weights are taken from a ring of copies
larger than any cache. Prefill (T = 512) is held against the float32 matrix rate of torch.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
from support.execute import Batch
from support.host import HostKernels, Operand
from support.report import header

HIDDEN, FFN, HEADS, KV_HEADS, DIM, VOCAB = 576, 1536, 9, 3, 64, 49152
KV = f"!llm.kv<heads = {KV_HEADS}, head_dim = {DIM}, v_head_dim = {DIM}, block = 64, element = f32>"
RING_BYTES = 256 << 20

# Runs the tiles of a launch as the runtime does: any thread takes the next tile.
DRIVER = """
#include <stdint.h>
void run_tiles(void (*entry)(const uint64_t *, int64_t), const uint64_t *args, int64_t tiles, int threads) {
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (int64_t tile = 0; tile < tiles; ++tile)
    entry(args, tile);
}
float read_all(const float *data, int64_t count, int threads) {
  float sum = 0;
#pragma omp parallel for simd reduction(+ : sum) num_threads(threads)
  for (int64_t i = 0; i < count; ++i)
    sum += data[i];
  return sum;
}
"""


def build_driver(folder: Path) -> Any:
    source, library = folder / "driver.c", folder / "driver.so"
    source.write_text(DRIVER)
    flags = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, source, "-o", library], check=True)
    driver = ctypes.CDLL(str(library))
    driver.run_tiles.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]
    driver.read_all.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]
    driver.read_all.restype = ctypes.c_float
    return driver


def seconds(call: Callable[[int], Any], least: float = 0.4) -> float:
    """The tenth percentile of the time of a call, which gets a running number.

    Not the mean: the machine may have other work. Not the least: one lucky call proves nothing.
    """
    call(0)
    times: list[float] = []
    end = time.perf_counter() + least
    while time.perf_counter() < end or len(times) < 10:
        start = time.perf_counter()
        call(len(times) + 1)
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 10]


def linear_text(n: int, k: int, glu: bool) -> str:
    out = n // 2 if glu else n
    tail = f"%z = llm.packed_glu silu interleaved %y : tensor<?x{n}xf32> -> tensor<?x{out}xf32>" if glu else ""
    return f"""llm.parameter @w : tensor<{n}x{k}xbf16> from #llm.source<"w">
llm.kernel @k(%x: tensor<?x{k}xf32>, %w: tensor<{n}x{k}xbf16>) -> tensor<?x{out}xf32> attributes {{anchor = "linear"}} {{
  %y = llm.linear %x, %w : tensor<?x{k}xf32>, tensor<{n}x{k}xbf16> -> tensor<?x{n}xf32>
  {tail}
  llm.yield %{"z" if glu else "y"} : tensor<?x{out}xf32>
}}
func.func @step(%x: tensor<?x{k}xf32>) -> tensor<?x{out}xf32> {{
  %w = llm.weight @w : tensor<{n}x{k}xbf16>
  %y = llm.launch @k(%x, %w) : (tensor<?x{k}xf32>, tensor<{n}x{k}xbf16>) -> tensor<?x{out}xf32>
  return %y : tensor<?x{out}xf32>
}}"""


ATTENTION = f"""
llm.kernel @k(%q: tensor<?x{HEADS}x{DIM}xf32>, %kv: {KV}, %b: !llm.batch) -> tensor<?x{HEADS}x{DIM}xf32> attributes {{anchor = "attention"}} {{
  %o = llm.paged_attention %q, %kv, %b {{scale = 0.125 : f64, causal}} : tensor<?x{HEADS}x{DIM}xf32>, {KV} -> tensor<?x{HEADS}x{DIM}xf32>
  llm.yield %o : tensor<?x{HEADS}x{DIM}xf32>
}}"""


class Bench:
    def __init__(self, threads: int, driver: Any) -> None:
        self.threads, self.driver = threads, driver
        self.rows: list[dict[str, Any]] = []
        data = np.ones((RING_BYTES >> 22, 1 << 20), np.float32)  # parts of 4 MiB
        took = seconds(lambda i: driver.read_all(data[i % len(data)].ctypes.data, data.shape[1], threads))
        self.bandwidth = data[0].nbytes / took
        torch.set_num_threads(threads)
        a = torch.randn(768, 768)
        self.flops = 2 * 768**3 / seconds(lambda _: torch.mm(a, a))

    def launch(
        self, kernels: HostKernels, operands: list[Operand], results: list[Any], rows: int
    ) -> Callable[[], None]:
        slots, entry, tiles = kernels.bind("k", operands, results, rows)

        def call(_keep: Any = (slots, operands, results)) -> None:
            self.driver.run_tiles(entry, ctypes.addressof(slots), tiles, self.threads)

        return call

    def report(self, name: str, tokens: int, took: float, nbytes: float, flops: float) -> None:
        row = {
            "kernel": name,
            "tokens": tokens,
            "microseconds": took * 1e6,
            "gbytes_per_s": nbytes / took / 1e9,
            "gflops": flops / took / 1e9,
            "of_bandwidth": nbytes / took / self.bandwidth,
            "of_flops": flops / took / self.flops,
        }
        self.rows.append(row)
        print(
            f"{name:28} T={tokens:<5} {row['microseconds']:10.1f} us {row['gbytes_per_s']:7.1f} GB/s "
            f"({row['of_bandwidth']:4.0%}) {row['gflops']:8.1f} GFLOP/s ({row['of_flops']:4.0%})",
            flush=True,
        )

    def linear(self, name: str, n: int, k: int, glu: bool = False) -> None:
        kernels = HostKernels(linear_text(n, k, glu))
        rng = np.random.default_rng(0)
        weight = rng.standard_normal((n, k)).astype(ml_dtypes.bfloat16)
        out = n // 2 if glu else n
        for tokens in (1, 4, 32, 512):
            copies = max(1, RING_BYTES // weight.nbytes) if tokens == 1 else 1
            x, y = rng.standard_normal((tokens, k)).astype(np.float32), np.empty((tokens, out), np.float32)
            packed = kernels.pack("k", x, weight)
            ring = [self.launch(kernels, [x, packed[1].copy()], [y], tokens) for _ in range(copies)]  # type: ignore[union-attr]
            took = seconds(lambda i: ring[i % copies]())  # noqa: B023
            self.report(f"{name} {n}x{k}", tokens, took, weight.nbytes, 2.0 * tokens * n * k)

    def attention(self, new: int, past: int) -> None:
        kernels = HostKernels(ATTENTION)
        batch = Batch.ragged([new], [past], 64, -(-(new + past) // 64))
        rng = np.random.default_rng(0)
        pools = tuple(
            rng.standard_normal((batch.block_table.size + 1, KV_HEADS, 64, DIM)).astype(np.float32) for _ in "kv"
        )
        q = rng.standard_normal((new, HEADS, DIM)).astype(np.float32)
        call = self.launch(kernels, [q, pools, batch], [np.empty_like(q)], new)
        pairs = sum(past + i + 1 for i in range(new))
        took = seconds(lambda _: call())
        self.report(f"attention past={past}", new, took, 2.0 * pools[0].nbytes, 4.0 * pairs * HEADS * DIM)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.threads, build_driver(Path(folder)))
    print(
        f"{options.threads} thread(s): memory {bench.bandwidth / 1e9:.1f} GB/s, "
        f"float32 matrix product {bench.flops / 1e9:.1f} GFLOP/s"
    )
    bench.linear("qkv", HIDDEN + 2 * KV_HEADS * DIM, HIDDEN)
    bench.linear("o", HIDDEN, HIDDEN)
    bench.linear("gate_up", 2 * FFN, HIDDEN, glu=True)
    bench.linear("down", HIDDEN, FFN)
    bench.linear("lm_head", VOCAB, HIDDEN)
    bench.attention(1, 511)
    bench.attention(512, 0)
    if options.json:
        ceilings = {"threads": options.threads, "bytes_per_s": bench.bandwidth, "flops": bench.flops}
        options.json.write_text(json.dumps({**header(), "ceilings": ceilings, "kernels": bench.rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
