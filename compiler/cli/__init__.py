"""The program `llmc`: one module a subcommand, each imported only when it runs.

A subcommand module has `add_arguments(parser)` and `run(arguments) -> exit code`; it may have
`spelled_out(words)`, which gives the words behind the subcommand their full form.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import shlex
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import llmc
from llmc.compiler.cli.arguments import HelpFormatter
from llmc.errors import CompileError, InternalError

#: Subcommand -> one line for `llmc --help`; the module has the same name with a trailing `_cmd`.
SUBCOMMANDS = {
    "compile": "compile a checkpoint into an engine",
    "quantize": "quantize a model into a checkpoint that other tools load too",
    "run": "complete one prompt",
    "chat": "talk to a model",
    "serve": "serve engines over HTTP with OpenAI's API",
    "top": "watch a server's engines at work",
    "bench": "measure throughput and latency of an engine or a server; time of a step, kernel by kernel",
    "tune": "measure which schedules of a model's linears are fastest",
    "eval": "measure quality: perplexity, agreement with a reference, multiple-choice accuracy",
    "inspect": "show what is in an engine",
    "refit": "bind the weights of a checkpoint to a stripped engine",
    "completion": "make a shell complete the words of llmc",
}

_INTERRUPTED = 130
_TERMINATED = 143


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit code: 0, 1 a bug in llmc, 2 wrong input, 130 Ctrl-C."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    # Only the chosen subcommand is imported: `llmc run` must not wait for the compiler.
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    if chosen in SUBCOMMANDS and hasattr(module := _module(chosen), "spelled_out"):
        place = arguments.index(chosen) + 1
        try:
            arguments[place:] = module.spelled_out(arguments[place:])
        except CompileError as error:
            _complain(str(error))
            return error.exit_code
    return _guarded(_parser([chosen]).parse_args(arguments))


def whole_parser() -> argparse.ArgumentParser:
    """With the options of every subcommand."""
    return _parser(list(SUBCOMMANDS))


def _module(name: str) -> Any:
    return importlib.import_module(f"llmc.compiler.cli.{name}_cmd")


def _parser(described: Sequence[str | None]) -> argparse.ArgumentParser:
    """Of the subcommands `described` the options, of the others the name."""
    parser = argparse.ArgumentParser(
        prog="llmc",
        description="Compiles a transformer checkpoint into an engine and serves it.",
        epilog="`llmc COMMAND --help` shows the options of a command.",
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"llmc {llmc.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in SUBCOMMANDS.items():
        subparser = commands.add_parser(name, help=summary, formatter_class=HelpFormatter, allow_abbrev=False)
        if name in described:
            module = _module(name)
            subparser.description = module.__doc__
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
    return parser


def _guarded(arguments: argparse.Namespace) -> int:
    """Runs the subcommand; every failure is one message on stderr and an exit code."""
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGTERM, _on_terminate)
    try:
        return arguments.run(arguments)
    except CompileError as error:
        _complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        _complain("interrupted")
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`llmc inspect ... | head`).
        sys.stderr.close()
        return 0
    except Exception as error:
        _complain(f"{type(error).__name__}: {error}\nThis is a bug in llmc. {_keep_traceback()}")
        return InternalError.exit_code


def _on_terminate(number: int, frame: object) -> NoReturn:
    # As an exception, so that half-written output is removed.
    raise SystemExit(_TERMINATED)


def _keep_traceback() -> str:
    """Writes the traceback to a file: it is for a bug report, not for the terminal."""
    handle, name = tempfile.mkstemp(prefix="llmc-crash-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f"llmc {llmc.__version__} {shlex.join(sys.argv[1:])}\n{traceback.format_exc()}")
    return f"Report it with {name}"


def _complain(message: str) -> None:
    print(f"llmc: error: {message}", file=sys.stderr)
