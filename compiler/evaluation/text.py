"""Token ids cut into windows that a model scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from llmc.errors import CompileError, OptionError


@dataclass(frozen=True)
class Window:
    """`tokens` in the order of the text; those from index `first` on are predicted, first >= 1."""

    tokens: tuple[int, ...]
    first: int

    @property
    def rows(self) -> list[int]:
        """Positions whose logits predict the counted tokens."""
        return list(range(self.first - 1, len(self.tokens) - 1))

    @property
    def targets(self) -> tuple[int, ...]:
        return self.tokens[self.first :]


def windows(ids: Sequence[int], length: int, stride: int | None = None, bos: int | None = None) -> Iterator[Window]:
    """Windows of at most `length` tokens, one each `stride` (default: `length`, no overlap).

    Every token is predicted once, by the window that gives it most context, but the first of the text;
    without overlap and `bos` also the first of each window is not, since nothing precedes it. `bos`
    begins each window.
    """
    head = () if bos is None else (bos,)
    body = length - len(head)
    step = body if stride is None else stride
    if body < 1 or length < 2 or not 1 <= step <= body:
        raise OptionError(f"a window of {length} tokens and a stride of {step}: expected 2 or more, and 1 to {body}")
    done = 0  # tokens of the text that a window has seen
    for start in range(0, max(len(ids), 1), step):
        part = tuple(ids[start : start + body])
        first = max(len(head) + done - start, 1)
        if first < len(head) + len(part):
            yield Window(head + part, first)
        done = start + len(part)
        if done >= len(ids):
            return


def read_text(paths: Sequence[Path]) -> str:
    """The texts of the files, joined by an empty line."""
    texts = []
    for path in paths:
        try:
            texts.append(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise CompileError(f"cannot read {path}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise CompileError(
                f"{path} is no UTF-8 text: byte {error.start} is {error.object[error.start]:#x}"
            ) from None
    return "\n\n".join(texts)
