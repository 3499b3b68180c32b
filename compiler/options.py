"""The options of a compilation: one frozen object, checked when it is made."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from llmc.compiler.quantization.formats import QuantizationFormat, find_format
from llmc.compiler.quantization.gate import Limits
from llmc.compiler.targets import Target, find_target
from llmc.errors import OptionError

_DTYPE_ALIASES = {
    "auto": "auto", "float32": "f32", "f32": "f32", "fp32": "f32", "float16": "f16", "f16": "f16",
    "fp16": "f16", "half": "f16", "bfloat16": "bf16", "bf16": "bf16",
}  # fmt: skip


_GLOB = re.compile(r"[\w.*?\[\]-]+")


def parse_dtype(text: str, option: str) -> str:
    """Canonical name (f32, f16, bf16, auto) of a dtype as users spell it (bfloat16, half, ...)."""
    try:
        return _DTYPE_ALIASES[text.lower()]
    except KeyError:
        raise OptionError(f"--{option} {text}: expected one of auto, bfloat16, float16, float32") from None


@dataclasses.dataclass(frozen=True)
class CompileOptions:
    """What the user asked for.

    target:          `host`, a CPU level or a GPU architecture (`llmc.compiler.targets`).
    kernels:         "portable" takes the kernels of every GPU where the target has faster ones of its
                     own (sm_90); "auto" takes the fastest.
    dtype:           storage type of the weights; "auto" is the target's first choice.
    kv_cache_dtype:  element type of the KV cache; "auto" is the target's first choice.
    max_batch_size:  sequences of one step.
    max_num_tokens:  tokens of one step, prefill and decode together.
    max_seq_len:     tokens of one sequence, prompt and answer; None is the model's own limit.
    block_size:      tokens of one KV block; None is the target's first choice.
    model_name:      what the engine calls the model; None: the name of a .gguf file, else the
                     architecture. Never the folder, so that equal inputs give equal engines.
    strip_weights:   write no weights; `llmc refit` binds them later.
    qformat:         quantization format (`llmc.compiler.quantization.formats`); "none" quantizes nothing.
    exclude:         globs of linears that stay as they are: over names of parameters or modules.
    quantize_lm_head: quantize the linear that makes the logits too.
    quality_gate:    run prompts through the quantized and the unquantized model and refuse too much difference.
    max_kl_divergence, min_top1_agreement: its limits (`llmc.compiler.quantization.gate.Limits`); None: the format's.
    dequantize:      take the values of layers that are quantized already in place of their codes.
    schedules:       file of measured schedules (`llmc tune`); None: those that llmc ships for the target.
    cache_dir:       folder of the kernel cache; None is the user's cache folder.
    use_cache:       whether to read and write the kernel cache.
    threads:         workers of the compiler; 0 is one for each CPU available. Never part of the
                     output.
    """

    target: str = "host"
    kernels: str = "auto"
    dtype: str = "auto"
    kv_cache_dtype: str = "auto"
    max_batch_size: int = 32
    max_num_tokens: int = 2048
    max_seq_len: int | None = None
    block_size: int | None = None
    model_name: str | None = None
    strip_weights: bool = False
    qformat: str = "none"
    exclude: tuple[str, ...] = ()
    quantize_lm_head: bool = False
    quality_gate: bool = True
    max_kl_divergence: float | None = None
    min_top1_agreement: float | None = None
    dequantize: bool = False
    schedules: Path | None = None
    cache_dir: Path | None = None
    use_cache: bool = True
    threads: int = 0

    def __post_init__(self) -> None:
        for name in ("max_batch_size", "max_num_tokens"):
            _at_least(name, getattr(self, name), 1)
        _at_least("threads", self.threads, 0)
        if self.max_seq_len is not None:
            _at_least("max_seq_len", self.max_seq_len, 2)
        if self.max_num_tokens < self.max_batch_size:
            raise OptionError(
                f"--max_num_tokens {self.max_num_tokens} is below --max_batch_size "
                f"{self.max_batch_size}: a decode step has one token for each sequence"
            )
        if self.qformat == "none" and (self.exclude or self.quantize_lm_head):
            raise OptionError("--exclude and --quantize_lm_head say what --qformat quantizes: name a format")
        limits = self.max_kl_divergence, self.min_top1_agreement
        if limits != (None, None) and (self.qformat == "none" or not self.quality_gate or self.strip_weights):
            raise OptionError(
                "--max_kl_divergence and --min_top1_agreement are limits of the quality gate: "
                "they need a --qformat, weights, and no --no_quality_gate"
            )
        for pattern in self.exclude:
            if not _GLOB.fullmatch(pattern):
                raise OptionError(
                    f"--exclude {pattern}: expected a glob over names of layers, "
                    "made of letters, digits and . _ - * ? [ ]"
                )

    def resolve(self) -> ResolvedOptions:
        """Fills in the target's defaults. Raises TargetError or OptionError."""
        target = find_target(self.target).with_kernels(self.kernels)
        if self.schedules is not None:
            if target.chip is None or not target.chip.hopper:
                raise OptionError(f"--schedules {self.schedules}: target {target.name} has no measured schedules")
            if not self.schedules.is_file():
                raise OptionError(f"--schedules {self.schedules}: no such file; `llmc tune time` writes one")
            target = dataclasses.replace(target, schedules=self.schedules)
        weights = _choose("dtype", self.dtype, target.weight_dtypes, target)
        activations = target.activation_dtypes[0]
        if not target.is_cpu and weights in target.activation_dtypes:
            activations = weights  # a GEMM multiplies operands of one type
        kv_default = activations if activations in target.kv_cache_dtypes else "auto"
        kv_wish = kv_default if self.kv_cache_dtype == "auto" else self.kv_cache_dtype
        block_size = self.block_size or target.block_sizes[0]
        if block_size not in target.block_sizes:
            raise OptionError(
                f"--block_size {block_size}: target {target.name} takes {', '.join(map(str, target.block_sizes))}"
            )
        return ResolvedOptions(
            target=target,
            weight_dtype=weights,
            activation_dtype=activations,
            kv_cache_dtype=_choose("kv_cache_dtype", kv_wish, target.kv_cache_dtypes, target),
            block_size=block_size,
            quantization=find_format(self.qformat, target),
            exclude=self.exclude,
            quantize_lm_head=self.quantize_lm_head,
        )

    def gate_limits(self, format: QuantizationFormat) -> Limits | None:
        """What the quality gate lets pass; None without a gate. Raises OptionError for impossible limits."""
        if not self.quality_gate or self.strip_weights:
            return None
        kl, top1 = self.max_kl_divergence, self.min_top1_agreement
        return Limits(
            format.limits.kl_divergence if kl is None else kl,
            format.limits.top1_agreement if top1 is None else top1,
        )


@dataclasses.dataclass(frozen=True)
class ResolvedOptions:
    """The target-dependent options without any "auto"."""

    target: Target
    weight_dtype: str
    activation_dtype: str
    kv_cache_dtype: str
    block_size: int
    quantization: QuantizationFormat | None = None
    exclude: tuple[str, ...] = ()
    quantize_lm_head: bool = False


def _at_least(name: str, value: int, minimum: int) -> None:
    if value < minimum:
        raise OptionError(f"--{name} {value}: expected at least {minimum}")


def _choose(option: str, wish: str, choices: tuple[str, ...], target: Target) -> str:
    dtype = parse_dtype(wish, option)
    if dtype == "auto":
        return choices[0]
    if dtype not in choices:
        raise OptionError(f"--{option} {wish}: target {target.name} takes {', '.join(choices)} or auto")
    return dtype
