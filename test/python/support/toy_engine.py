"""A toy engine (test/cpp/runtime/toy) with a byte-level tokenizer, compiled with the C compiler."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors

TOY = Path(__file__).parents[2] / "cpp" / "runtime" / "toy"
EMOJI = "😀é"
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ m['role'] + ': ' + m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def byte_tokenizer() -> tokenizers.Tokenizer:
    """64 ids: eos, bos, then bytes; a character beyond ASCII takes several tokens."""
    to_unicode = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    text = "abcdefghijklmnopqrstuvwxyz :\nABCDEFGHIJKLMNOPQRST" + EMOJI
    pieces = dict.fromkeys("".join(p for p, _ in to_unicode.pre_tokenize_str(text)))
    vocab = {"<eos>": 0, "<bos>": 1} | {piece: i + 2 for i, piece in enumerate(pieces)}
    assert len(vocab) <= 64
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = to_unicode
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<eos>", "<bos>"])
    # Adds a BOS, as Llama's tokenizer does: chat templates must not get a second one.
    tokenizer.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 1)])
    return tokenizer


def compile_kernels(path: Path, *options: str) -> Path:
    """The toy's kernels as a shared library; -DTOY_STEP_MICROSECONDS=N makes each step last that long."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise RuntimeError("the toy kernels need a C compiler (cc, gcc or clang in PATH)")
    source = str(TOY / "host.c")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", *options, source, "-o", str(path)], check=True)
    return path


def write_toy(root: Path, kernels: Path, edit: Callable[[Any, Any], None] | None = None) -> Path:
    """Writes the engine folder; `edit` may change its manifest and plan."""
    (root / "kernels").mkdir(parents=True)
    (root / "tokenizer").mkdir()
    shutil.copy(kernels, root / "kernels" / "host.so")
    manifest = json.loads((TOY / "manifest.json").read_text())
    plan = json.loads((TOY / "plan.json").read_text())
    bias = np.arange(64, dtype=np.float32) % 7 * 0.25
    header = {"bias": {"dtype": "F32", "shape": [64], "data_offsets": [0, bias.nbytes]}}
    head = json.dumps(header).encode()
    weights = struct.pack("<Q", len(head)) + head + bias.tobytes()
    (root / "weights.safetensors").write_bytes(weights)
    manifest["weights"]["tensors"] = [
        {"name": "bias", "dtype": "f32", "shape": [64], "sha256": _sha256(bias.tobytes())}
    ]
    byte_tokenizer().save(str(root / "tokenizer" / "tokenizer.json"))
    config = {"bos_token": {"content": "<bos>"}, "eos_token": "<eos>"}
    (root / "tokenizer" / "tokenizer_config.json").write_text(json.dumps(config))
    (root / "tokenizer" / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    if edit:
        edit(manifest, plan)
    (root / "plan.json").write_text(json.dumps(plan))
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        data = path.read_bytes()
        manifest["parts"].append({"path": str(path.relative_to(root)), "bytes": len(data), "sha256": _sha256(data)})
    (root / "manifest.json").write_text(json.dumps(manifest))
    return root


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
