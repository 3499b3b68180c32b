"""Helpers for declaring options."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any


class HelpFormatter(argparse.HelpFormatter):
    """Shows one spelling of an option, keeps line breaks, appends defaults."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=30, width=100)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return [row for line in text.splitlines() for row in textwrap.wrap(line, width, subsequent_indent="  ")]

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        shown = [s for s in action.option_strings if not s.startswith("--")]
        shown += [s for s in action.option_strings if s.startswith("--")][:1]
        value = "" if action.nargs == 0 else " " + self._format_args(action, action.dest.upper())
        return ", ".join(shown) + value

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        default = action.default
        if default is None or default is False or default is argparse.SUPPRESS or "default" in text:
            return text
        return f"{text} (default {default})"


def add_option(
    parser: argparse._ActionsContainer, name: str, *also: str, short: str | None = None, **settings: Any
) -> None:
    """Declares `--name` (snake case, as trtllm-build spells options).

    The dashed spelling works too, and so do the names of `also` (what vLLM calls the same thing).
    """
    spellings = [f"--{name}"]
    if "_" in name:
        spellings.append(f"--{name.replace('_', '-')}")
    spellings += [f"--{other}" for other in also]
    if short:
        spellings.insert(0, f"-{short}")
    parser.add_argument(*spellings, dest=name, **settings)
