"""Completion of the shells: bash is asked, the others' scripts are read."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from llmc.compiler.cli import SUBCOMMANDS, main


@pytest.fixture
def bash_script(capsys) -> str:
    assert main(["completion", "bash"]) == 0
    return capsys.readouterr().out


def completed(script: str, *words: str, folder=None) -> set[str]:
    """What bash offers for the last word."""
    bash = shutil.which("bash")
    assert bash, "the test needs bash"
    ask = """
    COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
    function=$(complete -p llmc | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
    $function llmc "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    command = [bash, "--norc", "-c", f"{script}\n{ask}", "bash", "llmc", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=60, check=True)
    return {line.strip() for line in done.stdout.splitlines() if line.strip()}


def test_commands(bash_script):
    assert completed(bash_script, "") >= set(SUBCOMMANDS)
    assert completed(bash_script, "com") == {"compile", "completion"}
    assert completed(bash_script, "bench", "") >= {"throughput", "latency", "serve", "sweep", "compare"}


def test_options_in_one_spelling(bash_script):
    assert "--max_batch_size" in completed(bash_script, "compile", "--max_b")
    assert completed(bash_script, "compile", "--max-b") == set()
    assert completed(bash_script, "serve", "--served") == {"--served_model_name"}


def test_values_and_files(bash_script, tmp_path):
    assert completed(bash_script, "completion", "") >= {"bash", "zsh", "fish"}
    assert completed(bash_script, "serve", "x", "--tool_call_parser", "h") == {"hermes"}
    (tmp_path / "an_engine.llmc").touch()
    assert completed(bash_script, "run", "an_", folder=tmp_path) == {"an_engine.llmc"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells(capsys, shell):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in SUBCOMMANDS) and "max_batch_size" in script
    assert ("#compdef llmc" if shell == "zsh" else "complete -c llmc") in script


def test_a_shell_that_is_unknown(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["completion", "ksh"])
    assert stopped.value.code == 2
