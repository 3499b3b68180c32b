"""Talks to a model. Ctrl-C stops an answer, Ctrl-D ends the program; /help lists the commands."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from llmc.compiler.cli.arguments import add_option
from llmc.compiler.cli.generation import add_generation_options, loaded, print_stream, sampling_params, user_errors
from llmc.errors import CompileError

if TYPE_CHECKING:
    from llmc.runtime import LLM, SamplingParams

HELP = """\
/clear       forget the conversation
/undo        forget the last question and its answer
/again       answer the last question once more (with --seed it is the same answer)
/save FILE   write the conversation as JSON: the messages of a chat completion
/quit        end, as Ctrl-D does
A line that ends in \\ goes on in the next one."""

_HISTORY_LINES = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("engine", metavar="ENGINE", type=Path, help="engine folder or .llmc file")
    add_option(parser, "system", metavar="TEXT", help="system message")
    add_generation_options(parser, max_tokens=512)


def run(arguments: argparse.Namespace) -> int:
    terminal = sys.stdin.isatty()
    if terminal:
        print(f"Loading {arguments.engine}", file=sys.stderr, flush=True)
    with loaded(arguments) as llm, _history() if terminal else contextlib.nullcontext():
        params = sampling_params(arguments, llm)
        if terminal:
            print(f"{llm.info['model_name']}. /help lists the commands, /quit ends.")
        conversation = Conversation(llm, params, arguments.system, arguments.stats or terminal)
        while (line := _read_line()) is not None and conversation.take(line):
            pass
    return 0


class Conversation:
    def __init__(self, llm: LLM, params: SamplingParams, system: str | None, stats: bool) -> None:
        self.llm, self.params, self.stats = llm, params, stats
        self.opening = [{"role": "system", "content": system}] if system else []
        self.messages = list(self.opening)

    def take(self, line: str) -> bool:
        """A question or a command; False: the end."""
        command, _, rest = line.partition(" ")
        if not line:
            return True
        if command in ("/quit", "/exit"):
            return False
        if not command.startswith("/"):
            self._ask(line)
        elif command == "/clear":
            self.messages = list(self.opening)
        elif command == "/undo":
            self._take_back()
        elif command == "/again":
            if (question := self._take_back()) is not None:
                self._ask(question)
        elif command == "/save":
            self._save(rest.strip())
        else:
            if command != "/help":
                print(f"there is no command {command}:", file=sys.stderr)
            print(HELP)
        return True

    def _ask(self, question: str) -> None:
        """Appends question and answer; without an answer the question is taken back."""
        self.messages.append({"role": "user", "content": question})
        try:
            with user_errors():
                text = print_stream(self.llm.chat_stream(self.messages, self.params), self.stats)
        except KeyboardInterrupt:
            print()
            self.messages.pop()
        except CompileError as error:  # such as a conversation that has grown too long
            print(f"{error} (/clear starts anew, /undo forgets the last answer)", file=sys.stderr)
            self.messages.pop()
        else:
            self.messages.append({"role": "assistant", "content": text})

    def _take_back(self) -> str | None:
        """The last question."""
        if len(self.messages) == len(self.opening):
            print("there is no question yet", file=sys.stderr)
            return None
        question = self.messages[-2]["content"]
        del self.messages[-2:]
        return question

    def _save(self, name: str) -> None:
        if not name:
            print("/save FILE: expected the name of a file", file=sys.stderr)
            return
        try:
            Path(name).write_text(json.dumps(self.messages, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        except OSError as error:
            print(f"cannot write {name}: {error.strerror}", file=sys.stderr)


@contextlib.contextmanager
def _history() -> Iterator[None]:
    """Line editing, with the lines of earlier chats."""
    try:
        import readline
    except ImportError:
        yield
        return
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    file = state / "llmc" / "chat_history"
    readline.set_history_length(_HISTORY_LINES)
    with contextlib.suppress(OSError):
        readline.read_history_file(file)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch(mode=0o600)  # what was asked is nobody else's
            readline.write_history_file(file)


def _read_line() -> str | None:
    """The next question; None at the end of input, also in the middle of one."""
    terminal = sys.stdin.isatty()
    lines: list[str] = []
    try:
        while True:
            lines.append(input(("... " if lines else "> ") if terminal else ""))
            if not lines[-1].endswith("\\"):
                break
            lines[-1] = lines[-1][:-1]
    except EOFError:
        return None
    except KeyboardInterrupt:  # at the prompt it forgets the line, as in a shell
        if not terminal:
            raise
        print()
        return ""
    return "\n".join(lines).strip()
