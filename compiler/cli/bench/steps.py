"""Measures how fast an engine runs: time per decode step and to the first token, or with --profile each kernel."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmc.compiler.cli.arguments import add_option
from llmc.errors import CompileError, OptionError

if TYPE_CHECKING:
    from llmc.runtime import StepProfile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("engine", metavar="ENGINE", type=Path, help="engine folder or .llmc file")
    add_option(parser, "batch", type=int, nargs="*", default=[1, 8], metavar="N", help="batch sizes to decode")
    add_option(parser, "input", "input_len", type=int, default=128, help="tokens of each sequence before decode")
    add_option(parser, "prefill", type=int, nargs="*", default=[512], metavar="N", help="prompt lengths to prefill")
    add_option(parser, "profile", action="store_true",
               help="each kernel of the step on the device: time, bytes, operations, share of the floor")  # fmt: skip
    add_option(parser, "read_bandwidth", type=float, metavar="TB/s",
               help="ceiling of memory bandwidth for --profile; default: a copy measured now")  # fmt: skip
    add_option(parser, "repeats", type=int, default=7, help="measurements per figure; the median counts")
    add_option(parser, "json", type=Path, metavar="FILE", help="write the figures to a file")
    add_option(parser, "threads", "num_threads", type=int, help="worker threads of a host engine")
    add_option(parser, "device", type=int, default=0, help="number of the GPU")


def run(arguments: argparse.Namespace) -> int:
    from llmc.compiler.benchmark.report import report, write_json
    from llmc.compiler.cli.generation import user_errors

    for name in ("batch", "prefill"):
        if any(value < 1 for value in getattr(arguments, name)):
            raise OptionError(f"--{name} takes sizes of 1 or more, found {getattr(arguments, name)}")
    if not arguments.batch and not arguments.prefill:
        raise OptionError("nothing to measure: give --batch or --prefill at least one size")
    with user_errors():
        rows = list(_profiles(arguments) if arguments.profile else _speeds(arguments))
    if arguments.json:
        write_json(arguments.json, report("steps", arguments.engine, argv=sys.argv[1:], rows=rows))
    return 0


def _speeds(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    from llmc.runtime import KvCacheConfig, load_engine
    from llmc.runtime.benchmark import decode_seconds, prefill_seconds

    kv_cache = KvCacheConfig(enable_block_reuse=False)  # prompts are repeated, and each is to be computed
    with load_engine(
        arguments.engine, num_threads=arguments.threads, device=arguments.device, kv_cache_config=kv_cache
    ) as engine:
        for batch in arguments.batch:
            seconds = decode_seconds(engine, batch, arguments.input)
            print(
                f"decode, batch {batch:>4}: {seconds * 1e3:9.3f} ms a step, {batch / seconds:10.1f} tokens/s",
                flush=True,
            )
            yield {"phase": "decode", "batch": batch, "input": arguments.input, "seconds": seconds}
        for length in arguments.prefill:
            seconds = prefill_seconds(engine, length, arguments.repeats)
            print(f"prefill of {length:>6}: {seconds * 1e3:9.3f} ms, {length / seconds:10.1f} tokens/s", flush=True)
            yield {"phase": "prefill", "tokens": length, "seconds": seconds}


def _profiles(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    from llmc.runtime import Profiler

    with Profiler(
        arguments.engine, num_threads=arguments.threads, device=arguments.device, verify_weights="never"
    ) as profiler:
        bandwidth = arguments.read_bandwidth * 1e12 if arguments.read_bandwidth else profiler.bandwidth()
        if not bandwidth:
            raise CompileError("no memory left to measure the bandwidth with; give --read_bandwidth")
        print(f"memory: {bandwidth / 1e12:.2f} TB/s" if bandwidth > 1e12 else f"memory: {bandwidth / 1e9:.1f} GB/s")
        shapes = [("decode", batch, 1, arguments.input + 1) for batch in arguments.batch]
        shapes += [("prefill", 1, length, length) for length in arguments.prefill]
        for phase, sequences, tokens, context in shapes:
            profile = profiler.step(sequences, tokens, context, arguments.repeats)
            print(f"\n{phase}: {sequences} x {tokens} tokens, context {context}")
            print(_table(profile, bandwidth), flush=True)
            yield {
                "phase": phase,
                "sequences": sequences,
                "tokens": tokens,
                "context": context,
                "bandwidth": bandwidth,
                **dataclasses.asdict(profile),
            }


def _table(profile: StepProfile, bandwidth: float) -> str:
    """One line a kernel, slowest first.

    `in chain` is by how much the step is longer for the kernel, `of floor` the time that its bytes need
    over the time it takes.
    """
    lines = [
        f"{'kernel':<26}{'kind':<12}{'launches':>8}{'us each':>9}{'us':>10}{'in chain':>10}"
        f"{'MB':>10}{'TFLOP/s':>9}{'of floor':>9}"
    ]

    def line(name: str, kind: str, launches: int, times: tuple[float, float | None], moved: int, flops: int) -> str:
        seconds, chain = times
        rate = f"{flops / seconds / 1e12:.3g}" if flops and seconds else ""
        each = f"{seconds / launches * 1e6:.2f}" if launches else ""
        share = f"{moved / bandwidth / seconds:.0%}" if seconds else ""
        within = "" if chain is None else f"{chain * 1e6:.1f}"
        left = f"{name:<26}{kind:<12}{launches or '':>8}{each:>9}{seconds * 1e6:>10.1f}{within:>10}"
        return f"{left}{moved / 1e6:>10.1f}{rate:>9}{share:>9}"

    for kernel in sorted(profile.kernels, key=lambda kernel: -kernel.seconds):
        times = kernel.seconds, kernel.chain_seconds
        lines.append(line(kernel.name, kernel.anchor, kernel.launches, times, kernel.bytes, kernel.flops))
    total = sum(kernel.seconds for kernel in profile.kernels)
    chain = sum(kernel.chain_seconds for kernel in profile.kernels)
    flops = sum(kernel.flops for kernel in profile.kernels)
    lines.append(line("sum of kernels", "", 0, (total, chain), profile.bytes, flops))
    lines.append(line("the step", "", 0, (profile.seconds, None), profile.bytes, flops))
    return "\n".join(lines)
