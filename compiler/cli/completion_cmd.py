"""Prints what makes a shell complete commands, options and files of llmc.

bash: eval "$(llmc completion bash)" in ~/.bashrc
zsh:  llmc completion zsh > "${fpath[1]}/_llmc"
fish: llmc completion fish > ~/.config/fish/completions/llmc.fish
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from llmc.errors import CompileError

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=SHELLS)


def run(arguments: argparse.Namespace) -> int:
    print(script(arguments.shell))
    return 0


def script(shell: str) -> str:
    """Of the whole program. Raises CompileError without shtab."""
    try:
        import shtab
    except ImportError as error:
        raise CompileError(f"llmc completion needs shtab: {error}") from None
    from llmc.compiler.cli import whole_parser

    parser = whole_parser()
    for action in _actions(parser):
        if action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks
        if "_" in (name := next((one for one in action.option_strings if one.startswith("--")), "")):
            # Each option has a dashed spelling too: one of them is enough to choose from.
            action.option_strings = [one for one in action.option_strings if not one.startswith("--")] + [name]
    return shtab.complete(parser, shell=shell)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)
        else:
            yield action
