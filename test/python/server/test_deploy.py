"""What tools/deploy has: each file says what the server does, and Triton's model runs against a stand-in for Triton."""

from __future__ import annotations

import importlib.util
import json
import queue
import re
import shutil
import subprocess
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from llmc.compiler.cli import serve_cmd, whole_parser
from llmc.runtime import LLM, SamplingParams

DEPLOY = Path(__file__).parents[3] / "tools" / "deploy"


def test_kubernetes(server, tmp_path):
    config, deployment, service = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert server.http.get(container[probe]["httpGet"]["path"]).status_code == 200
    assert server.http.get(deployment["spec"]["template"]["metadata"]["annotations"]["prometheus.io/path"]).is_success
    (tmp_path / "serve.yaml").write_text(config["data"]["serve.yaml"])
    words = container["args"]
    assert words[:2] == ["serve", "--config"]
    options = whole_parser().parse_args(["serve", *serve_cmd.spelled_out(["--config", str(tmp_path / "serve.yaml")])])
    assert pod["terminationGracePeriodSeconds"] > options.drain_seconds
    assert options.port == container["ports"][0]["containerPort"]
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {str(Path(words[2]).parent), "/" + options.engines[0].split("/")[1]} <= mounts
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]


def test_systemd(tmp_path):
    text = (DEPLOY / "llmc.service").read_text()
    [command] = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    assert whole_parser().parse_args([*command.split()[1:], "x"]).config == Path("/etc/llmc/serve.yaml")
    if (analyze := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd-analyze is not here")
    unit = tmp_path / "llmc.service"
    unit.write_text(text.replace(command.split()[0], sys.executable))
    done = subprocess.run([analyze, "verify", unit], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_dockerfile():
    """Every path that it copies is in the repository, and what it runs is a command."""
    text = (DEPLOY / "Dockerfile").read_text()
    copied = [line.split()[1] for line in text.splitlines() if line.startswith("COPY") and "--from" not in line]
    root = DEPLOY.parents[1]
    assert all((root / path).exists() for path in copied)
    for line in re.findall(r"^#   docker run .* llmc (\w+ .*)$", text, re.MULTILINE):
        whole_parser().parse_args(line.split())


@dataclass
class Tensor:
    name: str
    array: Any

    def as_numpy(self):
        return self.array


@dataclass
class Request:
    inputs: dict[str, Any]
    sent: queue.Queue = field(default_factory=queue.Queue)
    cancelled: bool = False

    def get_response_sender(self):
        return types.SimpleNamespace(send=lambda response, flags=0: self.sent.put((response, flags)))

    def is_cancelled(self) -> bool:
        return self.cancelled

    def answers(self) -> list[Any]:
        """All, up to the one that Triton is told is the last."""
        found = []
        while True:
            response, flags = self.sent.get(timeout=60)
            found.append(response)
            if flags:
                return found


class TritonError(Exception):
    CANCELLED, INVALID_ARG = "cancelled", "invalid"


def _stand_in() -> types.ModuleType:
    """The part of Triton's module that the model uses, as its documentation describes it."""
    module: Any = types.ModuleType("triton_python_backend_utils")
    module.Tensor, module.TritonError = Tensor, TritonError
    module.TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
    module.InferenceResponse = lambda output_tensors=(), error=None: types.SimpleNamespace(
        error=error, **{tensor.name: tensor.array[0] for tensor in output_tensors}
    )
    module.get_input_tensor_by_name = lambda request, name: (
        Tensor(name, np.array([request.inputs[name]] if not isinstance(request.inputs[name], list) else
                              request.inputs[name], dtype=np.object_ if isinstance(request.inputs[name], (bytes, list))
                              else None)) if name in request.inputs else None
    )  # fmt: skip
    return module


@pytest.fixture
def triton_model(toy, monkeypatch):
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", _stand_in())
    spec = importlib.util.spec_from_file_location("triton_model", DEPLOY / "triton" / "llmc" / "1" / "model.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.TritonPythonModel()
    model.initialize({"model_config": json.dumps({"parameters": {"engine": {"string_value": str(toy)}}})})
    yield model
    model.finalize()


def test_triton_answers_as_the_engine_does(triton_model, toy):
    with LLM(toy) as llm:
        params = SamplingParams(max_tokens=9, temperature=0)
        [alone] = llm.generate("hello", params)
        [chat] = llm.chat([{"role": "user", "content": "hello"}], params)
    asked = {"text_input": b"hello", "max_tokens": 9, "temperature": 0.0}
    plain, streamed, talk = Request(asked), Request({**asked, "stream": True}), Request({**asked, "chat": True})
    triton_model.execute([plain, streamed, talk])
    [answer] = plain.answers()
    output = alone.outputs[0]
    assert (answer.text_output.decode(), answer.finish_reason.decode()) == (output.text, output.finish_reason)
    assert answer.output_tokens == len(output.token_ids)
    pieces = streamed.answers()
    assert len(pieces) > 1 and b"".join(one.text_output for one in pieces).decode() == output.text
    assert sum(one.output_tokens for one in pieces) == len(output.token_ids)
    assert talk.answers()[0].text_output.decode() == chat.outputs[0].text


def test_triton_refuses_and_cancels(triton_model):
    wrong = Request({"text_input": b"a", "temperature": -1.0})
    stop = Request({"text_input": b"a", "max_tokens": 90, "stop_words": [b""]})
    gone = Request({"text_input": b"a", "max_tokens": 90}, cancelled=True)
    triton_model.execute([wrong, stop, gone])
    assert "temperature" in str(wrong.answers()[0].error)
    assert "stop strings must not be empty" in str(stop.answers()[0].error)
    assert gone.answers()[0].error.args[1] == TritonError.CANCELLED
    fine = Request({"text_input": b"a", "max_tokens": 2})
    triton_model.execute([fine])
    assert fine.answers()[0].error is None


def test_triton_config_has_the_inputs_that_the_model_reads():
    folder = DEPLOY / "triton" / "llmc"
    declared = set(re.findall(r'name: "(\w+)" data_type', (folder / "config.pbtxt").read_text()))
    code = (folder / "1" / "model.py").read_text()
    outputs = set(re.findall(r'Tensor\("(\w+)"', code))
    [sampling] = re.findall(r"^SAMPLING = \((.*)\)$", code, re.MULTILINE)
    read = set(re.findall(r'request, "(\w+)"\)', code)) | set(re.findall(r'"(\w+)"', sampling))
    assert declared == outputs | read
