"""Options that say which requests to send, and these requests."""

from __future__ import annotations

import argparse
import random
import re
from dataclasses import dataclass
from pathlib import Path

from llmc.compiler.benchmark.workload import WorkItem
from llmc.compiler.cli.arguments import add_option
from llmc.errors import OptionError

_LENGTH = "128"


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
               help=f"requests (default {num_requests}; of a dataset all)")  # fmt: skip
    if shapes:
        add_option(group, "shape", nargs="+", metavar="IN/OUTxN",
                   help="fixed lengths and count in one word, 128/128x2048; several make a run each")  # fmt: skip
    add_option(group, "shared_prefix", "random-prefix-len", type=int, default=0, metavar="N",
               help="tokens that all random prompts begin with, in addition")  # fmt: skip
    add_option(group, "dataset", "dataset-path", type=Path, metavar="FILE",
               help="JSON lines in the layout of trtllm-bench: prompt or input_ids, and output_tokens")  # fmt: skip
    add_option(group, "too_long", choices=["error", "skip", "clip"], default="error",
               help="what to do with requests longer than the engine's sequences")  # fmt: skip
    add_option(group, "seed", type=int, default=0, help="of random lengths and prompts")
    parser.set_defaults(default_num_requests=num_requests)


def workloads(arguments: argparse.Namespace, vocab_size: int) -> list[Workload]:
    """Raises OptionError."""
    from llmc.compiler.benchmark.dataset import read_dataset

    _check(arguments)
    if arguments.dataset:
        items = read_dataset(arguments.dataset, arguments.num_requests)
        return [Workload(arguments.dataset.name, items, repeats_prompts=True)]
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

    kinds = [given("shape"), given("input_len", "output_len"), given("dataset")]
    chosen = [names for names in kinds if names]
    if len(chosen) > 1:
        raise OptionError(
            f"expected one description of the requests, found {' and '.join(names[0] for names in chosen)}"
        )
    if given("shape") and given("num_requests"):
        raise OptionError("--shape says the number of requests itself: leave --num_requests out")
    if arguments.num_requests is not None and arguments.num_requests < 1:
        raise OptionError(f"--num_requests: expected 1 or more, found {arguments.num_requests}")
    if arguments.shared_prefix < 0:
        raise OptionError(f"--shared_prefix: expected 0 tokens or more, found {arguments.shared_prefix}")
