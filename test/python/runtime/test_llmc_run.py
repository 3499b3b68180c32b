"""The C++ program: token ids in and out, exit codes, one clear message for each mistake."""

from __future__ import annotations

import subprocess
import sys

import pytest

from llmc.native import native_path
from llmc.runtime import SamplingParams, load_engine


def run(*arguments):
    return subprocess.run(
        [str(native_path("bin/llmc-run")), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_prints_the_tokens_that_python_sees(toy):
    with load_engine(toy) as engine:
        expected = engine.generate([1, 2, 3], SamplingParams(temperature=0, max_tokens=9, ignore_eos=True))
    result = run(toy, "--tokens", "1,2,3", "--max-tokens=9", "--ignore-eos")
    assert result.returncode == 0
    assert [int(id) for id in result.stdout.split()] == expected[0].outputs[0].token_ids


def test_is_a_script_of_the_package(toy):
    code = "from llmc.native import llmc_run; llmc_run()"
    command = [sys.executable, "-c", code, str(toy), "--tokens", "1,2,3", "--max-tokens=9"]
    script = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert script.stdout == run(toy, "--tokens", "1,2,3", "--max-tokens=9").stdout != ""


def test_prompt_file_and_sampling(toy, tmp_path):
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("1 2 3\n\n4,5\n")
    arguments = ("--prompt-file", prompts, "--temperature", 1, "--top-k", 5, "--seed", 3, "--ignore-eos")
    result = run(toy, *arguments, "--stats")
    lines = result.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["0", "1"]
    assert all(len(line.split()) == 17 for line in lines)
    assert "KV blocks in use 0 of" in result.stderr
    assert run(toy, *arguments).stdout == result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name an engine"),
        (["engine"], "give a prompt"),
        (["engine", "--tokens", "1,x"], '--tokens: expected an integer, found "x"'),
        (["engine", "--tokens", "99999999999"], "does not fit 32 bits"),
        (["engine", "--tokens"], "--tokens needs a value"),
        (["engine", "--tokens", "1", "--wat"], "unknown option --wat"),
        (["engine", "--prompt-file", "nowhere.txt"], "cannot read nowhere.txt"),
        (["engine", "--tokens", "1", "--seed", "-1"], "--seed: expected"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments, message):
    result = run(*arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_failures_are_exit_code_1(toy, tmp_path):
    missing = run(tmp_path / "nowhere", "--tokens", "1")
    assert missing.returncode == 1
    assert missing.stderr.startswith("llmc-run: cannot load the engine (not found): no engine at")
    refused = run(toy, "--tokens", "64")
    assert refused.returncode == 1
    assert "outside the vocabulary of 64" in refused.stderr
