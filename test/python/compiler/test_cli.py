import functools
import signal
import subprocess
import sys

import pytest

from llmc.compiler.cli import SUBCOMMANDS, inspect_cmd, main, run_cmd  # noqa: F401


def test_version(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == "llmc 0.1.0\n"


@pytest.mark.parametrize("command", SUBCOMMANDS)
def test_help_of_every_command(capsys, command):
    with pytest.raises(SystemExit) as exit_:
        main([command, "--help"])
    assert exit_.value.code == 0
    assert "usage: llmc" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: COMMAND"),
        (["compil"], "invalid choice: 'compil'"),
        (["compile"], "required: MODEL"),
        (["compile", "m", "-o", "e", "--max_batch_size", "many"], "invalid int value: 'many'"),
        (["compile", "m", "-o", "e", "--emit", "ptx2"], "invalid choice: 'ptx2'"),
        (["compile", "m", "-o", "e", "--no-such-option"], "unrecognized arguments"),
    ],
)
def test_bad_usage(capsys, arguments, message):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compile", "m"], "where to? Name the engine with -o ENGINE"),
        (["compile", "m", "-o", "e", "--target", "sm_91"], "did you mean sm_90?"),
        (["compile", "m", "-o", "e", "--qformat", "fp8"], "not there yet"),
        (["compile", "m", "-o", "e", "--max-num-seqs", "0"], "--max_batch_size 0: expected at least 1"),
        (["compile", "no/such/model", "-o", "e"], "no model at no/such/model"),
        (["inspect", "no/such/engine"], "no engine at no/such/engine"),
        (["refit", "no/such/engine", "m"], "no engine at no/such/engine"),
    ],
)
def test_wrong_input_is_one_message(capsys, monkeypatch, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("llmc: error: ")
    assert message in error
    assert "Traceback" not in error
    assert not list(tmp_path.iterdir())


def test_the_prompt_may_follow_options(monkeypatch):
    """argparse gives an optional positional away before it has seen the options behind the engine."""
    seen = []
    monkeypatch.setattr("llmc.compiler.cli.run_cmd.run", lambda arguments: seen.append(arguments.prompt) or 0)
    assert main(["run", "engine", "--chat", "Why?"]) == 0
    assert main(["run", "engine", "Why?", "--chat"]) == 0
    assert seen == ["Why?", "Why?"]


def modules_after(*arguments):
    """Which heavy packages a command line imports."""
    code = (
        "import sys; from llmc.compiler.cli import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "print(sorted({'torch', 'transformers', 'mlir', 'torch_mlir', 'rich', 'numpy'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return result.stdout.splitlines()[-1]


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["run", "--help"], ["compile", "--help"]])
def test_help_imports_nothing_heavy(arguments):
    assert modules_after(*arguments) == "[]"


def test_run_imports_no_compiler(tmp_path):
    imported = modules_after("run", str(tmp_path), "hello")
    assert "torch" not in imported
    assert "transformers" not in imported
    assert "mlir" not in imported


SLOW_COMMAND = """
import sys, time
from pathlib import Path
from llmc.compiler.cli import compile_cmd, main
from llmc.compiler.output import OutputFolder

def run(arguments):
    with OutputFolder(arguments.output) as out:
        out.write("part", b"data")
        print("writing", flush=True)
        time.sleep(60)

compile_cmd.run = run
sys.exit(main(["compile", "model", "-o", sys.argv[1]]))
"""


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
def test_a_killed_compilation_leaves_nothing(tmp_path, sent, code):
    command = [sys.executable, "-c", SLOW_COMMAND, str(tmp_path / "engine")]
    # A test run in the background ignores SIGINT, and a child inherits that: give it back.
    restore = functools.partial(signal.signal, sent, signal.SIG_DFL)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, preexec_fn=restore, **pipes) as process:
        assert process.stdout.readline() == "writing\n"
        process.send_signal(sent)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == code
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def test_a_bug_is_one_message_and_keeps_its_traceback(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("llmc.compiler.cli.inspect_cmd.run", lambda arguments: 1 // 0)
    assert main(["inspect", "engine"]) == 1
    error = capsys.readouterr().err
    assert "ZeroDivisionError" in error
    assert "This is a bug in llmc" in error
    assert "Traceback" not in error
    [kept] = tmp_path.iterdir()
    assert str(kept) in error
    assert "Traceback" in kept.read_text()
