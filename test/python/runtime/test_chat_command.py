"""`llmc chat`: a conversation over standard input, and in a terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time

import pytest

from llmc.compiler.cli import main
from llmc.runtime import LLM, SamplingParams


@pytest.fixture
def chat(toy, monkeypatch, capsys):
    """Lines in; (answers, complaints) out."""

    def talk(*lines: str, options: tuple[str, ...] = ()) -> tuple[str, str]:
        given = iter(lines)

        def read(prompt: str = "") -> str:
            try:
                return next(given)
            except StopIteration:
                raise EOFError from None

        monkeypatch.setattr("builtins.input", read)
        monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: SIM115  no terminal
        assert main(["chat", str(toy), "-n", "5", "--ignore_eos", "--temperature", "0", *options]) == 0
        found = capsys.readouterr()
        return found.out, found.err

    return talk


def expected(toy, *questions: str, system: str | None = None) -> list[str]:
    messages = [{"role": "system", "content": system}] if system else []
    answers = []
    with LLM(toy) as llm:
        for question in questions:
            messages.append({"role": "user", "content": question})
            params = SamplingParams(max_tokens=5, ignore_eos=True, temperature=0)
            answers.append(llm.chat(messages, params)[0].outputs[0].text)
            messages.append({"role": "assistant", "content": answers[-1]})
    return answers


def test_a_conversation(chat, toy):
    assert chat("abc", "", "de", options=("--system", "q"))[0] == "".join(
        answer + "\n" for answer in expected(toy, "abc", "de", system="q")
    )


def test_a_question_of_two_lines(chat, toy):
    assert chat("abc\\", "de")[0] == expected(toy, "abc\nde")[0] + "\n"


def test_commands(chat, toy, tmp_path):
    one, two = expected(toy, "abc", "de")
    [fresh] = expected(toy, "de")
    assert chat("abc", "/clear", "de")[0] == f"{one}\n{fresh}\n"
    assert chat("abc", "zz", "/undo", "de")[0].endswith(f"{two}\n")
    assert chat("abc", "de", "/again")[0] == f"{one}\n{two}\n{two}\n"
    assert chat("abc", "/quit", "de")[0] == f"{one}\n"
    chat("abc", "de", f"/save {tmp_path}/talk.json")
    saved = json.loads((tmp_path / "talk.json").read_text())
    assert [(m["role"], m["content"]) for m in saved] == [
        ("user", "abc"), ("assistant", one), ("user", "de"), ("assistant", two)
    ]  # fmt: skip


def test_complaints(chat):
    for line, message in (
        ("/undo", "there is no question yet"),
        ("/again", "there is no question yet"),
        ("/save", "expected the name of a file"),
        ("/save /nowhere/x", "cannot write /nowhere/x"),
        ("/cleer", "there is no command /cleer"),
        ("a" * 200, "/clear starts anew"),
    ):
        assert message in chat(line)[1], line
    assert "/clear" in chat("/help")[0]


def test_in_a_terminal(toy, tmp_path):
    """Prompt, token rate, and a history that only its owner may read."""
    parent, child = pty.openpty()
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path), "TERM": "dumb"}
    command = [sys.executable, "-m", "llmc", "chat", str(toy), "-n", "5", "--ignore_eos", "--temperature", "0"]
    process = subprocess.Popen(command, stdin=child, stdout=child, stderr=child, env=environment)
    os.close(child)
    seen = b""

    def wait_for(text: bytes) -> None:
        nonlocal seen
        end = time.monotonic() + 60
        while text not in seen:
            assert time.monotonic() < end, seen
            try:
                seen += os.read(parent, 4096)
            except OSError:  # it has ended
                assert text in seen, seen

    wait_for(b"/help lists the commands")
    wait_for(b"> ")
    os.write(parent, b"hello\n")
    wait_for(b"tokens/s")
    os.write(parent, b"\x04")
    assert process.wait(60) == 0
    os.close(parent)
    history = tmp_path / "llmc" / "chat_history"
    assert "hello" in history.read_text() and history.stat().st_mode & 0o077 == 0
