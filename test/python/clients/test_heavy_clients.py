"""Clients that CI does without: each in its own environment, as its users run it. `make test-clients` installs them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.client_venv import ENVIRONMENTS, ROOT, ClientVenvs, offline_environment

pytestmark = [pytest.mark.clients, pytest.mark.slow]

MODEL = "smollm2"
SESSIONS = ROOT / "test" / "clients"


def run(command: Sequence[str | Path], folder: Path, **environment: str) -> str:
    """What it prints; fails with that when it fails."""
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, env=offline_environment(**environment),
        capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_litellm(client_venvs: ClientVenvs, base_url: str, tmp_path: Path):
    python = client_venvs("litellm") / "bin" / "python"
    assert "ok" in run([python, SESSIONS / "python" / "litellm_session.py", base_url, MODEL], tmp_path)


class TestNode:
    @pytest.fixture(scope="class")
    def node(self) -> Path:
        assert shutil.which("npm"), "these clients need Node 20 or newer with npm"
        folder = ENVIRONMENTS / "node"
        folder.mkdir(parents=True, exist_ok=True)
        for file in (SESSIONS / "node").iterdir():
            shutil.copy(file, folder)
        run(["npm", "ci", "--no-audit", "--no-fund"], folder)
        return folder

    @pytest.mark.parametrize("session", ["openai", "ai_sdk"])
    def test_session(self, node: Path, base_url: str, session: str):
        assert "ok" in run(["node", f"{session}.mjs", base_url, MODEL], node)


class TestLmEval:
    """Scores over the API are those of transformers with the same weights in float32."""

    @pytest.fixture(scope="class")
    def reference(self, smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("reference")
        run([sys.executable, SESSIONS / "python" / "from_gguf.py", smollm2, folder], folder)
        return folder

    @pytest.fixture(scope="class")
    def scores(self, client_venvs: ClientVenvs, tmp_path_factory: pytest.TempPathFactory):
        environment = client_venvs("lm-eval")
        tasks = tmp_path_factory.mktemp("tasks")
        run([environment / "bin" / "python", SESSIONS / "python" / "lm_eval_tasks.py", tasks], tasks)

        def evaluate(model: str, settings: str, names: str, *more: str) -> dict[str, Any]:
            output = tasks / f"{model}{len(list(tasks.iterdir()))}"
            command = [environment / "bin" / "lm_eval", "--model", model, "--model_args", settings, "--include_path",
                       tasks, "--tasks", names, "--output_path", output, *more]  # fmt: skip
            run(command, tasks, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")
            [found] = output.rglob("results*.json")
            return json.loads(found.read_text(encoding="utf-8"))["results"]

        return evaluate

    # bfloat16 against float32: an answer may tip where two are about equally likely.
    NOISE = 2 / 32

    def test_local_completions(self, scores, reference: Path, base_url: str):
        settings = f"model={MODEL},base_url={base_url}/completions,tokenizer_backend=huggingface,tokenizer={reference}"
        ours = scores("local-completions", settings, "elements,capitals")
        theirs = scores("hf", f"pretrained={reference},dtype=float32", "elements,capitals", "--device", "cpu")
        for task, metric in (("elements", "acc,none"), ("capitals", "exact_match,named")):
            assert abs(ours[task][metric] - theirs[task][metric]) <= self.NOISE, (task, ours, theirs)
            assert 0.2 < ours[task][metric] < 1, "a task that tells nothing"

    def test_local_chat_completions(self, scores, reference: Path, base_url: str):
        settings = f"model={MODEL},base_url={base_url}/chat/completions"
        ours = scores("local-chat-completions", settings, "capitals", "--apply_chat_template")
        theirs = scores("hf", f"pretrained={reference},dtype=float32", "capitals", "--apply_chat_template",
                        "--device", "cpu")  # fmt: skip
        score, expected = (found["capitals"]["exact_match,named"] for found in (ours, theirs))
        assert abs(score - expected) <= self.NOISE and score > 0.2


class TestLoadGenerators:
    @pytest.fixture(scope="class")
    def tokenizer(self, smollm2_host_engine: Path) -> Path:
        return smollm2_host_engine / "tokenizer"

    def test_aiperf(self, client_venvs: ClientVenvs, smollm2_server: str, tokenizer: Path, tmp_path: Path):
        """Synthetic prompts, then a trace of moments and lengths."""
        aiperf = client_venvs("aiperf") / "bin" / "aiperf"
        shared = [aiperf, "profile", "--model", MODEL, "--url", smollm2_server, "--endpoint-type", "chat",
                  "--streaming", "--tokenizer", tokenizer, "--ui", "none"]  # fmt: skip
        trace = tmp_path / "trace.jsonl"
        rows = [{"timestamp": 400 * i, "input_length": 20 + 9 * i, "output_length": 8 + i} for i in range(8)]
        trace.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        for name, more in (
            ("synthetic", ["--request-count", "6", "--concurrency", "2", "--isl", "64", "--osl", "16"]),
            ("trace", ["--input-file", trace, "--custom-dataset-type", "mooncake_trace", "--fixed-schedule"]),
        ):
            run([*shared, *more, "--artifact-dir", tmp_path / name], tmp_path)
            [found] = (tmp_path / name).rglob("profile_export_aiperf.json")
            report = json.loads(found.read_text(encoding="utf-8"))
            assert report["request_count"]["avg"] == (6 if name == "synthetic" else len(rows))
            assert not report.get("error_summary"), report["error_summary"]

    def test_guidellm(self, client_venvs: ClientVenvs, smollm2_server: str, tokenizer: Path, tmp_path: Path):
        guidellm = client_venvs("guidellm") / "bin" / "guidellm"
        run(
            [guidellm, "run", "--backend", f"kind=openai_http,target={smollm2_server},model={MODEL}", "--tokenizer",
             f"kind=hf_auto,model={tokenizer}", "--profile", "kind=concurrent,streams=2", "--constraint",
             "kind=max_requests,count=4", "--data", "kind=synthetic_text,prompt_tokens=64,output_tokens=16"],
            tmp_path, HF_HUB_OFFLINE="1",
        )  # fmt: skip
        [found] = tmp_path.rglob("benchmarks.json")
        [benchmark] = json.loads(found.read_text(encoding="utf-8"))["benchmarks"]
        requests = benchmark["requests"]
        assert len(requests["successful"]) >= 4 and not requests["errored"]
