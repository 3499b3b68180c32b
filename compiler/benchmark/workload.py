"""The requests of a run."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from llmc.compiler.benchmark.lengths import Lengths
from llmc.errors import OptionError

#: Below are the ids that tokenizers give to padding, beginning and end of sequences.
FIRST_TOKEN_ID = 3

TooLong = Literal["error", "skip", "clip"]


@dataclass(frozen=True)
class WorkItem:
    """One request: a text or token ids, how many tokens to make, and when it comes."""

    prompt: str | list[int]
    output_tokens: int
    arrival: float | None = None  #: seconds after the start of the run; None: as soon as there is room


def random_tokens(rng: random.Random, count: int, vocab_size: int) -> list[int]:
    if vocab_size <= FIRST_TOKEN_ID:
        raise OptionError(f"expected a vocabulary of more than {FIRST_TOKEN_ID} tokens, found {vocab_size}")
    return rng.choices(_ids(vocab_size), k=count)


@functools.cache
def _ids(vocab_size: int) -> list[int]:
    # One object for each id, that millions of prompt tokens share.
    return list(range(FIRST_TOKEN_ID, vocab_size))


def synthetic(
    inputs: Lengths, outputs: Lengths, count: int, vocab_size: int, rng: random.Random, shared_prefix: int = 0
) -> list[WorkItem]:
    """Random prompts, all different behind the first `shared_prefix` tokens, which come on top of `inputs`."""
    prefix = random_tokens(rng, shared_prefix, vocab_size)
    lengths = zip(inputs.draw(rng, count), outputs.draw(rng, count), strict=True)
    return [WorkItem(prefix + random_tokens(rng, prompt, vocab_size), answer) for prompt, answer in lengths]


def tokenized(items: Sequence[WorkItem], encode: Callable[[str], list[int]]) -> list[WorkItem]:
    return [
        dataclasses.replace(item, prompt=encode(item.prompt)) if isinstance(item.prompt, str) else item
        for item in items
    ]


def fitted(items: Sequence[WorkItem], max_seq_len: int, policy: TooLong) -> list[WorkItem]:
    """What fits sequences of `max_seq_len` tokens.

    Clipping shortens the answer, then the prompt from its end, but leaves a token of each.
    Raises OptionError where the policy is "error" and something is too long, and where nothing is left.
    """

    def excess(item: WorkItem) -> int:
        return len(item.prompt) + item.output_tokens - max_seq_len

    too_long = [item for item in items if excess(item) > 0]
    if too_long and policy == "error":
        longest = max(too_long, key=excess)
        raise OptionError(
            f"{len(too_long)} of {len(items)} requests do not fit: expected at most {max_seq_len} tokens of prompt and "
            f"answer, found {len(longest.prompt)} + {longest.output_tokens}; pass --too_long skip or clip, shorter "
            "lengths, or an engine of a larger --max_seq_len"
        )
    left = [_clipped(item, max_seq_len) for item in items if policy == "clip" or excess(item) <= 0]
    if not left:
        raise OptionError(f"none of {len(items)} requests fits {max_seq_len} tokens of prompt and answer")
    return left


def _clipped(item: WorkItem, max_seq_len: int) -> WorkItem:
    answer = max(1, min(item.output_tokens, max_seq_len - len(item.prompt)))
    return dataclasses.replace(item, prompt=item.prompt[: max_seq_len - answer], output_tokens=answer)
