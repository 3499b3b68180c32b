"""Talks to a model. /clear forgets the conversation, /quit or Ctrl-D ends it, Ctrl-C stops an answer."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from llmc.compiler.cli.arguments import add_option
from llmc.compiler.cli.generation import add_generation_options, loaded, print_stream, sampling_params, user_errors
from llmc.errors import CompileError

if TYPE_CHECKING:
    from llmc.runtime import LLM, SamplingParams


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("engine", metavar="ENGINE", type=Path, help="engine folder or .llmc file")
    add_option(parser, "system", metavar="TEXT", help="system message")
    add_generation_options(parser, max_tokens=512)


def run(arguments: argparse.Namespace) -> int:
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  line editing and history for input()

    opening = [{"role": "system", "content": arguments.system}] if arguments.system else []
    with loaded(arguments) as llm:
        params = sampling_params(arguments, llm)
        if sys.stdin.isatty():
            print(f"{llm.info['model_name']}. /clear starts anew, /quit ends.")
        messages = list(opening)
        while (line := _read_line()) is not None:
            if line in ("/quit", "/exit"):
                break
            if line == "/clear":
                messages = list(opening)
            elif line:
                messages.append({"role": "user", "content": line})
                _answer(llm, messages, params, arguments.stats)
    return 0


def _answer(llm: LLM, messages: list[dict[str, str]], params: SamplingParams, stats: bool) -> None:
    """Appends the answer to the conversation; without one the question is taken back."""
    try:
        with user_errors():
            text = print_stream(llm.chat_stream(messages, params), stats)
    except KeyboardInterrupt:
        print()
        messages.pop()
    except CompileError as error:  # such as a conversation that has grown too long
        print(f"{error} (/clear starts anew)", file=sys.stderr)
        messages.pop()
    else:
        messages.append({"role": "assistant", "content": text})


def _read_line() -> str | None:
    """The next line of the user; None at the end of input."""
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return None
