"""Multiple-choice accuracy: the choice whose text the model finds likeliest, given the question.

The definition is that of lm-evaluation-harness: `accuracy` takes the sum of a choice's log
probabilities, `normalized_accuracy` divides it by the bytes of the choice.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from llmc.compiler.evaluation.scorer import Scorer, check_windows, log_softmax
from llmc.compiler.evaluation.text import Window
from llmc.errors import CompileError, OptionError

Encode = Callable[[str], list[int]]

_SHAPE = '{"context": "...", "choices": ["...", "..."], "answer": 0}'


@dataclass(frozen=True)
class Question:
    """`answer` is the index of the right choice; the model sees context + choice."""

    context: str
    choices: tuple[str, ...]
    answer: int


@dataclass(frozen=True)
class ChoiceResult:
    """Standard errors are those of a proportion over the questions."""

    questions: int
    accuracy: float
    normalized_accuracy: float

    def standard_error(self, value: float) -> float:
        return math.sqrt(value * (1 - value) / self.questions)


def read_questions(path: Path) -> list[Question]:
    """A JSON object per line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise CompileError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CompileError(f"{path} is no UTF-8 text: byte {error.start}") from None
    questions = [_question(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
    if not questions:
        raise CompileError(f"{path} has no questions: expected a line {_SHAPE} for each")
    return questions


def _question(line: str, where: str) -> Question:
    try:
        row = json.loads(line)
        question = Question(row["context"], tuple(row["choices"]), row["answer"])
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise CompileError(f"{where}: expected {_SHAPE}, found {line[:80]!r} ({error})") from None
    texts = (question.context, *question.choices)
    if not all(isinstance(text, str) for text in texts) or not all(question.choices):
        raise CompileError(f"{where}: context and choices must be texts, and no choice empty")
    if len(question.choices) < 2:
        raise CompileError(f"{where}: expected two or more choices, found {len(question.choices)}")
    if type(question.answer) is not int or not 0 <= question.answer < len(question.choices):
        raise CompileError(f"{where}: answer {question.answer!r} is no index of the {len(question.choices)} choices")
    return question


def continuation(encode: Encode, context: str, text: str, max_length: int) -> Window:
    """The window whose counted tokens are those of `text`, context cut at its beginning where it is too long.

    Blanks at the end of the context belong to the choice, as tokenizers join them.
    """
    bare = context.rstrip()
    before, whole = encode(bare), encode(context + text)
    first = len(before)
    if not 0 < first < len(whole):
        # A tokenizer may join across the border, and an empty context has no token to predict from.
        first = max(1, min(first, len(whole) - 1))
    if len(whole) < 2 or len(whole) - first + 1 > max_length:
        raise OptionError(f"a choice of {len(whole) - first} tokens cannot be scored, the engine holds {max_length}")
    cut = max(0, len(whole) - max_length)
    return Window(tuple(whole[cut:]), first - cut)


def choice(
    scorer: Scorer, encode: Encode, questions: Sequence[Question], advance: Callable[[int], None] = lambda count: None
) -> ChoiceResult:
    """`advance` is told of each question that is done."""
    right = normalized = 0
    for question in questions:
        candidates = [continuation(encode, question.context, text, scorer.max_length) for text in question.choices]
        check_windows(scorer, candidates)
        sums = []
        for window, logits in zip(candidates, scorer.logits(candidates), strict=True):
            logp = log_softmax(logits, scorer.name)
            sums.append(float(logp[np.arange(len(logp)), window.targets].sum()))
        lengths = [len(text.encode()) for text in question.choices]
        right += int(np.argmax(sums)) == question.answer
        normalized += int(np.argmax([s / n for s, n in zip(sums, lengths, strict=True)])) == question.answer
        advance(1)
    return ChoiceResult(len(questions), right / len(questions), normalized / len(questions))
