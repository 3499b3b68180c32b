import subprocess
import sys

import pytest

from llmc.compiler.cli import SUBCOMMANDS, main


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
