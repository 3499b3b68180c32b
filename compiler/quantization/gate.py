"""The gate of a quantizing compile: fixed prompts through the quantized and the unquantized engine.

Both run on this machine, one after the other; only the logits of the first are kept meanwhile.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmc.errors import ModelError, OptionError

if TYPE_CHECKING:
    from llmc.compiler.evaluation import AgreementResult
    from llmc.compiler.evaluation.scorer import Logits
    from llmc.compiler.evaluation.text import Window
    from llmc.runtime import Engine

#: Tokens of a prompt, and how many prompts at most.
WINDOW = 128
PROMPTS = 4


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a quantized model may differ from the unquantized one.

    kl_divergence: KL(unquantized || quantized), nats, mean over tokens, at most.
    top1_agreement: fraction of tokens whose most likely successor is the same, at least.
    """

    kl_divergence: float
    top1_agreement: float

    def __post_init__(self) -> None:
        if not self.kl_divergence > 0:
            raise OptionError(f"--max_kl_divergence {self.kl_divergence}: expected more than 0")
        if not 0 <= self.top1_agreement <= 1:
            raise OptionError(f"--min_top1_agreement {self.top1_agreement}: expected 0 to 1")


class QualityError(ModelError):
    """The quantized model is too far from the unquantized one."""


def prompts(engine: Engine, window: int = WINDOW) -> list[Window]:
    """The fixed prompts in the tokens of the engine."""
    from llmc.compiler.evaluation import windows

    text = (files("llmc.compiler.quantization") / "texts" / "gate.txt").read_text(encoding="utf-8")
    ids = engine.tokenizer.encode(text, add_special_tokens=False)[: PROMPTS * window]
    return list(windows(ids, min(window, int(engine.info["max_seq_len"]))))


@contextlib.contextmanager
def loaded(path: Path, threads: int, tokens: int) -> Iterator[Engine]:
    """A host engine with a KV cache of so many tokens, no more."""
    try:
        from llmc.runtime import EngineError, load_engine
        from llmc.runtime.config import KvCacheConfig
    except ImportError as error:
        raise OptionError(
            f"quantizing runs the model on this machine, but llmc was built without its runtime ({error}): "
            "build it or pass --no_quality_gate"
        ) from None
    cache = KvCacheConfig(max_tokens=tokens, enable_block_reuse=False)
    try:
        with load_engine(path, num_threads=threads or None, kv_cache_config=cache, verify_weights="never") as engine:
            yield engine
    except EngineError as error:
        raise ModelError(
            f"the quantized model cannot be measured on this machine: {error}; --no_quality_gate compiles without"
        ) from None


def score(path: Path, threads: int, advance: Callable[[int], None]) -> tuple[list[Window], list[Logits]]:
    """The fixed prompts and an engine's logits of them, float32 [len(window.rows), vocab] each."""
    from llmc.compiler.evaluation import EngineScorer

    with loaded(path, threads, 2 * WINDOW) as engine:
        parts = prompts(engine)
        scorer = EngineScorer(engine)
        found: list[Logits] = []
        for part in parts:
            found += scorer.logits([part])
            advance(1)
        return parts, found


def compare(parts: Sequence[Window], quantized: Sequence[Logits], reference: Sequence[Logits]) -> AgreementResult:
    """Raises CompileError where logits are not finite."""
    from llmc.compiler.evaluation import Agreement

    total = Agreement()
    for index, (part, ours, theirs) in enumerate(zip(parts, quantized, reference, strict=True)):
        total.add(ours, theirs, part.targets, f"the quantized model, prompt {index}")
    return total.result()


def check(result: AgreementResult, limits: Limits, format: str, worst: Sequence[str]) -> None:
    """Raises QualityError beyond a limit. worst: layers with most noise, for the message."""
    misses = []
    if not result.kl_divergence <= limits.kl_divergence:
        misses.append(f"KL divergence {result.kl_divergence:.3g} nats, at most {limits.kl_divergence:g} expected")
    if not result.top1_agreement >= limits.top1_agreement:
        misses.append(f"top-1 agreement {result.top1_agreement:.1%}, at least {limits.top1_agreement:.1%} expected")
    if misses:
        raise QualityError(
            f"--qformat {format} changes this model too much, over {result.tokens} tokens of the gate's prompts: "
            f"{'; '.join(misses)}. The noisiest layers are {', '.join(worst)}. Leave layers out with --exclude, choose "
            "another format, or move the limits with --max_kl_divergence and --min_top1_agreement "
            "(--no_quality_gate: no limits)"
        )


def to_json(result: AgreementResult, limits: Limits) -> dict[str, Any]:
    return {"limits": dataclasses.asdict(limits), **dataclasses.asdict(result)}
