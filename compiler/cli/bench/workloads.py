"""Options that say which requests to send, and these requests."""

from __future__ import annotations

import argparse
import dataclasses
import random
import re
from dataclasses import dataclass
from pathlib import Path

from llmc.compiler.benchmark.workload import WorkItem
from llmc.compiler.cli.arguments import add_option
from llmc.errors import OptionError

_LENGTH = "128"
#: Options below that figures depend on.
WORKLOAD_SETTINGS = (
    "input_len", "output_len", "num_requests", "shape", "shared_prefix", "dataset", "trace", "trace_speed",
    "request_rate", "burstiness", "too_long", "seed",
)  # fmt: skip


@dataclass(frozen=True)
class Workload:
    name: str
    items: list[WorkItem]
    repeats_prompts: bool = False  #: whether prompts have common beginnings that a cache can find


def add_workload_options(parser: argparse.ArgumentParser, num_requests: int, shapes: bool = True) -> None:
    group = parser.add_argument_group("requests (random prompts unless there is a dataset)")
    add_option(group, "input_len", "isl", "random-input-len", metavar="LENGTHS",
               help=f"tokens of a prompt: N, LOW-HIGH or normal:MEAN:DEVIATION (default {_LENGTH})")  # fmt: skip
    add_option(group, "output_len", "osl", "random-output-len", metavar="LENGTHS",
               help=f"tokens of an answer, in the same forms (default {_LENGTH})")  # fmt: skip
    add_option(group, "num_requests", "num-prompts", type=int, metavar="N",
               help=f"requests (default {num_requests}; of a dataset or trace all)")  # fmt: skip
    if shapes:
        add_option(group, "shape", nargs="+", metavar="IN/OUTxN",
                   help="fixed lengths and count in one word, 128/128x2048; several make a run each")  # fmt: skip
    add_option(group, "shared_prefix", "random-prefix-len", type=int, default=0, metavar="N",
               help="tokens that all random prompts begin with, in addition")  # fmt: skip
    add_option(group, "dataset", "dataset-path", type=Path, metavar="FILE",
               help="JSON lines in the layout of trtllm-bench: prompt or input_ids, and output_tokens")  # fmt: skip
    add_option(group, "trace", type=Path, metavar="FILE",
               help="lengths and moments of real requests: Azure's CSV or Mooncake's JSON lines")  # fmt: skip
    add_option(group, "trace_speed", type=float, default=1.0, metavar="X", help="play the trace X times as fast")
    add_option(group, "request_rate", type=float, metavar="R",
               help="requests/s, at random moments (default: a trace's own moments, else all at once)")  # fmt: skip
    add_option(group, "burstiness", type=float, default=1.0, metavar="B",
               help="of --request_rate: 1 Poisson arrivals, below in bursts, above more even")  # fmt: skip
    add_option(group, "too_long", choices=["error", "skip", "clip"], default="error",
               help="what to do with requests longer than the engine's sequences")  # fmt: skip
    add_option(group, "seed", type=int, default=0, help="of random lengths and prompts")
    parser.set_defaults(default_num_requests=num_requests)


def workloads(arguments: argparse.Namespace, vocab_size: int | None) -> list[Workload]:
    """Raises OptionError. Only random prompts need the size of the vocabulary."""
    from llmc.compiler.benchmark.arrivals import at_rate

    _check(arguments)
    found = _workloads(arguments, vocab_size)
    if arguments.request_rate is None:
        return found
    rng = random.Random(f"arrivals {arguments.seed}")
    return [
        dataclasses.replace(one, items=at_rate(one.items, arguments.request_rate, rng, arguments.burstiness))
        for one in found
    ]


def _workloads(arguments: argparse.Namespace, vocab_size: int | None) -> list[Workload]:
    from llmc.compiler.benchmark.arrivals import sped_up
    from llmc.compiler.benchmark.dataset import read_dataset
    from llmc.compiler.benchmark.traces import read_trace, trace_items

    if arguments.dataset:
        items = read_dataset(arguments.dataset, arguments.num_requests)
        return [Workload(arguments.dataset.name, items, repeats_prompts=True)]
    if vocab_size is None:
        raise OptionError(
            "random prompts need the size of the vocabulary, which the server does not tell: pass --tokenizer or "
            "--vocab_size, or a --dataset"
        )
    if arguments.trace:
        rows = read_trace(arguments.trace, arguments.num_requests)
        items = sped_up(trace_items(rows, vocab_size, arguments.seed), arguments.trace_speed)
        return [Workload(arguments.trace.name, items, repeats_prompts=any(row.blocks for row in rows))]
    rng = random.Random(arguments.seed)
    shapes = [parse_shape(text) for text in getattr(arguments, "shape", None) or ()]
    if not shapes:
        count = arguments.num_requests or arguments.default_num_requests
        shapes = [(arguments.input_len or _LENGTH, arguments.output_len or _LENGTH, count)]
    return [_synthetic(arguments, shape, vocab_size, rng) for shape in shapes]


def _synthetic(
    arguments: argparse.Namespace, shape: tuple[str, str, int], vocab_size: int, rng: random.Random
) -> Workload:
    from llmc.compiler.benchmark.lengths import Lengths
    from llmc.compiler.benchmark.workload import synthetic

    inputs, outputs, count = shape
    items = synthetic(
        Lengths.parse("--input_len", inputs),
        Lengths.parse("--output_len", outputs),
        count,
        vocab_size,
        rng,
        arguments.shared_prefix,
    )
    return Workload(f"{inputs}/{outputs}x{count}", items, repeats_prompts=arguments.shared_prefix > 0)


def parse_shape(text: str) -> tuple[str, str, int]:
    """`128/64x32` as lengths of prompts, of answers, and the number of requests. Raises OptionError."""
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)x([1-9]\d*)", text)
    if not match:
        raise OptionError(f"--shape: expected input/output x requests like 128/128x2048, found {text!r}")
    return match[1], match[2], int(match[3])


def _check(arguments: argparse.Namespace) -> None:
    def given(*names: str) -> list[str]:
        return [f"--{name}" for name in names if getattr(arguments, name, None)]

    kinds = [given("shape"), given("input_len", "output_len"), given("dataset"), given("trace")]
    chosen = [names for names in kinds if names]
    if len(chosen) > 1:
        raise OptionError(
            f"expected one description of the requests, found {' and '.join(names[0] for names in chosen)}"
        )
    if given("shape") and given("num_requests"):
        raise OptionError("--shape says the number of requests itself: leave --num_requests out")
    if arguments.num_requests is not None and arguments.num_requests < 1:
        raise OptionError(f"--num_requests: expected 1 or more, found {arguments.num_requests}")
    for name in ("request_rate", "trace_speed", "burstiness"):
        value = getattr(arguments, name)
        if value is not None and not 0 < value < 1e9:
            raise OptionError(f"--{name}: expected a positive number, found {value:g}")
    if arguments.shared_prefix < 0:
        raise OptionError(f"--shared_prefix: expected 0 tokens or more, found {arguments.shared_prefix}")
