"""How long work reports its progress; the command line draws it, a library caller sees nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

#: Called with the amount of work done since the last call, in the units of the task's total.
Advance = Callable[[int], None]


class Progress:
    """Reports nothing. Subclasses override `task`."""

    @contextlib.contextmanager
    def task(self, label: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """A piece of work of `total` units ("bytes", "kernels"); None when that is not known."""
        yield lambda amount: None


SILENT = Progress()
