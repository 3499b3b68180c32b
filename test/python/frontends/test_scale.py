"""A model of 405 billion parameters imports on a laptop."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
import transformers

_IMPORT = """
import resource, sys
from llmc.frontends import import_checkpoint
imported = import_checkpoint(sys.argv[1])
operations = sum(1 for op in imported.module.body.operations if op.operation.name == "llm.parameter")
print(operations, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.slow
def test_llama_405b_imports_in_three_minutes_and_six_gigabytes(tmp_path: Path) -> None:
    transformers.LlamaConfig(
        architectures=["LlamaForCausalLM"],
        hidden_size=16384,
        intermediate_size=53248,
        num_hidden_layers=126,
        num_attention_heads=128,
        num_key_value_heads=8,
        vocab_size=128256,
        max_position_embeddings=131072,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 500000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    ).save_pretrained(tmp_path)
    start = time.monotonic()
    command = [sys.executable, "-c", _IMPORT, str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds = time.monotonic() - start
    parameters, peak_bytes = map(int, result.stdout.split())
    print(f"405B: {seconds:.0f} s, {peak_bytes / 1e9:.2f} GB")
    assert parameters == 126 * 9 + 4  # nine a layer; embedding, head, norm and rope frequencies
    assert seconds < 180
    assert peak_bytes < 6e9
