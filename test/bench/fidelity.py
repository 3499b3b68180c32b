"""How close an engine is to transformers on the same weights.

    python test/bench/fidelity.py ENGINE CHECKPOINT --text FILE [--tokens 2048] [--out FILE.json]

CHECKPOINT is the .gguf file or Hugging Face folder that the engine was made from. Its weights are
rounded as the engine stores them (bfloat16) and transformers runs them in float32, the reference,
and in bfloat16, to see what that rounding alone does. Teacher-forced over windows of the text:
top-1 agreement, logit difference, KL divergence, perplexity. Greedy: the share of 64 tokens up to
the first difference, for 20 prompts taken from the text.

The same script serves host and GPU engines; with CUDA, transformers runs on the GPU too.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import torch
import transformers

from llmc.compiler.evaluation import Agreement
from llmc.runtime import SamplingParams, load_engine

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
from support.report import header

WINDOW = 512


def load_reference(path: Path, device: str) -> Any:
    """The transformers model in float32, weights rounded to bfloat16."""
    from transformers import AutoModelForCausalLM

    where = {"gguf_file": path.name} if path.suffix == ".gguf" else {}
    folder = path.parent if path.suffix == ".gguf" else path
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **where)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.bfloat16().float())
    return model.to(device).eval()


@torch.no_grad()
def logits_of(model: Any, ids: list[int]) -> torch.Tensor:
    device = next(model.parameters()).device
    return model(torch.tensor([ids], device=device)).logits[0].float().cpu()


@torch.no_grad()
def greedy_of(model: Any, prompt: list[int], count: int) -> list[int]:
    device = next(model.parameters()).device
    ids = torch.tensor([prompt], device=device)
    out = model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=count, min_new_tokens=count,
        pad_token_id=0, eos_token_id=None,
    )  # fmt: skip
    return out[0, len(prompt) :].tolist()


def teacher_forced(engine: Any, model: Any, half: Any, ids: list[int]) -> dict[str, Any]:
    totals = {"engine": Agreement(), "transformers_bf16": Agreement()}
    for start in range(0, len(ids) - WINDOW, WINDOW):
        window, targets = ids[start : start + WINDOW], ids[start + 1 : start + WINDOW + 1]
        reference = logits_of(model, window).numpy()
        totals["engine"].add(engine.forward([window])[0], reference, targets)
        totals["transformers_bf16"].add(logits_of(half, window).numpy(), reference, targets)
    return {name: dataclasses.asdict(total.result()) for name, total in totals.items()}


def common_prefix(a: list[int], b: list[int]) -> float:
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if x != y:
            return i / len(a)
    return 1.0


def greedy(engine: Any, model: Any, half: Any, ids: list[int], prompts: int, count: int) -> dict[str, Any]:
    starts = [i * (len(ids) - 64) // prompts for i in range(prompts)]
    inputs = [ids[s : s + 16 + 2 * (i % 12)] for i, s in enumerate(starts)]
    params = SamplingParams(temperature=0.0, max_tokens=count, ignore_eos=True)
    ours = [out.outputs[0].token_ids for out in engine.generate([{"prompt_token_ids": p} for p in inputs], params)]
    full = [greedy_of(model, p, count) for p in inputs]
    rounded = [greedy_of(half, p, count) for p in inputs]

    def mean(a: list[list[int]], b: list[list[int]]) -> float:
        return statistics.mean(common_prefix(list(x), list(y)) for x, y in zip(a, b, strict=True))

    return {
        "prompts": prompts,
        "tokens": count,
        "engine_vs_transformers_f32": mean(ours, full),
        "engine_vs_transformers_bf16": mean(ours, rounded),
        "transformers_bf16_vs_f32": mean(rounded, full),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", type=Path)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = False
    model = load_reference(options.checkpoint, device)
    half = load_reference(options.checkpoint, device).bfloat16()
    with load_engine(options.engine) as engine:
        text = options.text.read_text(encoding="utf-8")
        ids = engine.tokenizer.encode(text[: options.tokens * 8])[: options.tokens + 1]
        if len(ids) <= options.tokens:
            parser.error(f"{options.text} has {len(ids)} tokens, --tokens {options.tokens} needs one more than that")
        report = {
            **header(options.engine),
            "reference": {"device": device, "torch": torch.__version__, "transformers": transformers.__version__},
            "text_sha256": hashlib.sha256(text.encode()).hexdigest(),
            "teacher_forced": teacher_forced(engine, model, half, ids),
            "greedy": greedy(engine, model, half, ids, options.prompts, options.new_tokens),
            "blocks_used_at_end": engine.stats["blocks_used"],
        }
    assert report["blocks_used_at_end"] == 0, f"{report['blocks_used_at_end']} KV blocks are still in use"
    print(json.dumps(report, indent=2))
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
