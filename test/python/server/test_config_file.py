"""`llmc serve --config FILE`."""

from __future__ import annotations

import httpx
import pytest
from support.serve_process import start, url_of

from llmc.compiler.cli import main
from llmc.compiler.cli.serve_cmd import spelled_out


@pytest.fixture
def config(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "serve.yaml"
        path.write_text(text)
        return str(path)

    return write


def test_a_server_from_a_file(config, toy):
    file = config(f"engines: [mine={toy}]\nport: 0\nmax-requests: 3\napi_key: [one, two]\nlog_level: error\n")
    process = start("--config", file)
    try:
        url = url_of(process)
        headers = {"authorization": "Bearer two"}
        [model] = httpx.get(f"{url}/v1/models", headers=headers).json()["data"]
        assert model["id"] == "mine"
        assert httpx.get(f"{url}/v1/models").status_code == 401
        body = {"prompt": "a", "n": 4}
        assert "this server holds 3" in httpx.post(f"{url}/v1/completions", json=body, headers=headers).text
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_the_command_line_wins(config):
    file = config("engines: x\nport: 1\ndocs: true\nhost: null\n")
    assert spelled_out(["--config", file, "--port", "2"]) == ["x", "--port=1", "--docs", "--port", "2"]
    assert spelled_out(["y", f"--config={file}"]) == ["y", "--port=1", "--docs"]
    assert spelled_out(["--config", file, "--host", "h", "y"])[-1] == "y"
    assert "x" not in spelled_out(["--config", file, "--host", "h", "y"])
    assert spelled_out(["y", "--port", "2"]) == ["y", "--port", "2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot: 1", "there is no option 'prot'; there are allowed_origins, api_key"),
        ("port: [1, 2]", "port: expected one value, found [1, 2]"),
        ("port: true", "port: expected one value, found True"),
        ("docs: maybe", "docs: expected true or false, found 'maybe'"),
        ("api_key: {a: b}", "api_key: expected a value or a list of values"),
        ("- a", "expected lines `option: value`, found list"),
        ("a: [", "is no YAML"),
        ("engines: /nowhere\nport: 0", "/nowhere"),
    ],
)
def test_bad_files(config, capsys, text, message):
    assert main(["serve", "--config", config(text)]) == 2
    assert message in capsys.readouterr().err


def test_a_file_that_is_not_there(capsys, tmp_path):
    assert main(["serve", "x", "--config", str(tmp_path / "none")]) == 2
    assert "cannot read" in capsys.readouterr().err
