"""The driver: one method a phase, each of which runs once and on demand."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmc.compiler import pipeline
from llmc.compiler.cache import KernelCache, default_cache_dir
from llmc.compiler.disk import check_replaceable
from llmc.compiler.kernels import compile_kernels, emit_kernels, layout_passes
from llmc.compiler.manifest import (
    MANIFEST,
    PLAN,
    RECIPES,
    TOKENIZER,
    WEIGHTS,
    build_manifest,
    limits_of,
    model_section,
)
from llmc.compiler.options import CompileOptions
from llmc.compiler.output import OutputFolder
from llmc.compiler.parameters import read_parameters, set_workspaces
from llmc.compiler.phases import Phase
from llmc.compiler.plan import build_plan, referenced_weights
from llmc.compiler.progress import SILENT, Progress
from llmc.compiler.quality import Quality, check_quality
from llmc.compiler.quantization.gate import WINDOW
from llmc.compiler.quantization.report import WeightReport
from llmc.compiler.quantization.stored import Assignment, check_values, stored_assignments
from llmc.compiler.weights import Weight, check_sources, total_bytes, write_weights
from llmc.errors import ModelError, OptionError
from llmc.passes import IrDump, PassRunner, clone

if TYPE_CHECKING:
    from mlir import ir

    from llmc.codegen.kernel import CompiledKernel
    from llmc.frontends import ImportedModel


@dataclasses.dataclass(frozen=True)
class EngineSummary:
    """What a compilation wrote."""

    output: Path
    target: str
    kernels: int
    launches: int
    weight_bytes: int
    from_cache: bool
    quality: Quality | None = None
    #: About the checkpoint: what may be wrong with it, or is not used.
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"{self.output}: {self.target}, {self.kernels} kernels{' from the cache' if self.from_cache else ''}, "
            f"{self.launches} launches a step, {self.weight_bytes / 1e6:,.0f} MB of weights"
        )


class Compilation:
    """One model, one set of options.

    model:    path of a Hugging Face folder or .gguf file.
    dump_dir: where to write the IR after every phase and pass; None: nowhere.

    Raises CompileError (see llmc.errors) for everything that the user can put right.
    """

    def __init__(
        self,
        model: str | Path,
        options: CompileOptions | None = None,
        progress: Progress = SILENT,
        dump_dir: Path | None = None,
    ):
        self.model = Path(model)
        self.options = options or CompileOptions()
        self.resolved = self.options.resolve()
        if self.resolved.quantization:
            self.options.gate_limits(self.resolved.quantization)  # bad ones are refused before the long work
        self.progress = progress
        self._dump = IrDump(dump_dir) if dump_dir else None
        self._runner = PassRunner(self._dump)
        folder = (self.options.cache_dir or default_cache_dir()) if self.options.use_cache else None
        self.cache = KernelCache(folder)

    # ---- phases -------------------------------------------------------------

    @functools.cached_property
    def imported(self) -> ImportedModel:
        """Phases torch and llm: the checkpoint as a dense graph."""
        imported = self._import(keep_torch=self._dump is not None)
        if self._dump:
            self._dump.write(f"{Phase.TORCH.stage}.mlir", imported.torch_text or "")
            self._dump.write(f"{Phase.LLM.stage}.mlir", str(imported.module))
        return imported

    def _import(self, keep_torch: bool) -> ImportedModel:
        from mlir import ir

        from llmc.frontends import ImportOptions, import_checkpoint

        options = ImportOptions(
            max_seq_len=self.options.max_seq_len, keep_torch=keep_torch, dequantize=self.options.dequantize
        )
        context = ir.Context()
        context.enable_multithreading(self.options.threads != 1)
        with self.progress.task(f"importing {self.model.name}"):
            return import_checkpoint(self.model, options, context)

    @functools.cached_property
    def stored(self) -> tuple[Assignment, ...]:
        """How the checkpoint is quantized already, as the target runs it. Raises ModelError, OptionError."""
        self.check_stored()
        if self.options.dequantize:
            return ()
        imported = self.imported
        return stored_assignments(imported.module, imported.tensors, imported.checkpoint, self.resolved.target)

    def check_stored(self) -> None:
        """Raises OptionError when the options do not fit how the checkpoint is quantized already."""
        checkpoint = self.imported.checkpoint
        quantized = checkpoint.quantized_names()
        if self.options.dequantize:
            if not quantized and checkpoint.format != "gguf":
                raise OptionError(f"--dequantize: no layer of {self.model} is quantized")
        elif quantized and self.resolved.quantization:
            raise OptionError(
                f"--qformat {self.options.qformat}: {self.model} is quantized already "
                f"('{quantized[0]}': {checkpoint.stored_format(quantized[0])}); leave the option out, "
                "or quantize its values again with --dequantize"
            )

    def run_passes(self, module: ir.Module, passes: list[str]) -> None:
        """Runs passes of phase kernels over a module. Raises ModelError where they refuse the model."""
        self._runner.run(module, Phase.KERNELS.stage, passes, pipeline.refusal)

    @functools.cached_property
    def outlined(self) -> ir.Module:
        """Phase kernels: the step as a list of launches of outlined kernels."""
        module = clone(self.imported.module)
        passes = pipeline.kernel_passes(self.resolved, self.stored) + layout_passes(self.resolved)
        with self.progress.task("optimising"):
            self.run_passes(module, passes)
        return module

    @functools.cached_property
    def limits(self) -> dict[str, int]:
        """The manifest's limits. Raises OptionError when the model cannot reach max_seq_len."""
        reach = getattr(self.imported.config.get_text_config(), "max_position_embeddings", None)
        wanted = self.options.max_seq_len or reach
        if wanted is None:
            raise OptionError("the model has no length limit of its own: set --max_seq_len")
        if reach is not None and wanted > reach:
            raise OptionError(
                f"--max_seq_len {wanted}: the model was made for at most {reach} tokens (max_position_embeddings)"
            )
        return limits_of(self.options, wanted, self.resolved.block_size)

    @functools.cached_property
    def kernels(self) -> dict[str, CompiledKernel]:
        """Phases tile, llvm and ptx: machine code of every kernel, by symbol.

        They run before phase plan, which needs to know the scratch memory of each kernel.
        """
        kernels = compile_kernels(self.outlined, self.resolved, self.limits, self.cache, self.progress, self._runner)
        if self._dump:
            for phase in (Phase.TILE, Phase.LLVM, Phase.PTX):
                if any(phase.value in kernel.ir for kernel in kernels.values()):
                    suffix = "txt" if phase is Phase.PTX else "mlir"
                    self._dump.write(f"{phase.stage}.{suffix}", emit_kernels(kernels.values(), phase))
        return kernels

    @functools.cached_property
    def planned(self) -> ir.Module:
        """Phase plan: every buffer has its place in the arena."""
        module = clone(self.outlined)
        set_workspaces(module, {name: kernel.workspace_bytes for name, kernel in self.kernels.items()})
        with self.progress.task("planning memory"):
            self._runner.run(module, Phase.PLAN.stage, pipeline.plan_passes(self.limits))
        return module

    def on_host(self, qformat: str) -> Compilation:
        """The same model for this CPU in another format, with no gate and small limits: to measure it."""
        plain = qformat == "none"
        other = Compilation(
            self.model,
            self._measuring(
                qformat=qformat,
                exclude=() if plain else self.options.exclude,
                quantize_lm_head=not plain and self.options.quantize_lm_head,
            ),
            self.progress,
        )
        other.imported = self.imported
        return other

    def of_written(self, checkpoint: Path) -> Compilation:
        """A checkpoint that was made of this model, for this CPU, in the same way."""
        options = self._measuring(qformat="none", exclude=(), quantize_lm_head=False, dequantize=False)
        return Compilation(checkpoint, options, self.progress)

    def _measuring(self, **changes: Any) -> CompileOptions:
        return dataclasses.replace(
            self.options,
            target="host",
            kernels="auto",
            schedules=None,
            kv_cache_dtype="auto",
            block_size=None,
            max_batch_size=1,
            max_num_tokens=WINDOW,
            strip_weights=False,
            quality_gate=False,
            max_kl_divergence=None,
            min_top1_agreement=None,
            **changes,
        )

    # ---- results ------------------------------------------------------------

    def emit(self, phase: Phase, locations: bool = False) -> str:
        """The IR of a phase as text; `llmc-opt` reads every level that is MLIR."""
        if phase is Phase.TORCH:
            imported = self.imported
            if imported.torch_text is None:
                imported = self._import(keep_torch=True)
            return imported.torch_text or ""
        modules = {
            Phase.LLM: lambda: self.imported.module,
            Phase.KERNELS: lambda: self.outlined,
            Phase.PLAN: lambda: self.planned,
        }
        if phase in modules:
            return modules[phase]().operation.get_asm(enable_debug_info=locations)
        return emit_kernels(self.kernels.values(), phase)

    def write_engine(self, destination: Path, force: bool = False) -> EngineSummary:
        """Compiles and writes the engine; nothing appears at `destination` before it is whole.

        force: replace an engine that is there.
        """
        check_replaceable(destination, force)  # before the long work
        checkpoint = self.imported.checkpoint
        if not checkpoint.has_weights and not self.options.strip_weights:
            raise ModelError(
                f"{self.model} has no weights: expected *.safetensors beside its config.json, "
                "or --strip_weights to compile without them"
            )
        warnings = check_values(checkpoint, self.progress) if checkpoint.has_weights else []
        abstract = pipeline.export_plan(self.planned)
        plan, code = build_plan(
            abstract, self.kernels, self.limits["max_num_tokens"], self.limits["max_blocks_per_seq"]
        )
        with OutputFolder(destination, force) as out:
            for path, data in code.items():
                out.write(path, data)
            out.write_json(PLAN, plan)
            used = referenced_weights(plan)
            weights = [weight for weight in read_parameters(self.planned) if weight.name in used]
            out.write_json(RECIPES, {"weights": [weight.to_json() for weight in weights]})
            self._write_tokenizer(out)
            report = WeightReport() if self.resolved.quantization and not self.options.strip_weights else None
            hashes = None if self.options.strip_weights else self._write_weights(out, weights, report)
            manifest = build_manifest(
                model=model_section(
                    self.imported.config, self.imported.identity, out.folder / TOKENIZER, self.options.model_name
                ),
                limits=self.limits,
                resolved=self.resolved,
                stored=self.stored,
                weights=weights,
                weight_hashes=hashes,
                parts=out.part_list(),
            )
            out.write_json(MANIFEST, manifest)
            quality = None if report is None else check_quality(self, out.folder, report)
            out.commit()
        if quality is not None:
            quality.write(destination)
        return EngineSummary(
            output=destination,
            target=self.resolved.target.name,
            kernels=len(plan["kernels"]),
            launches=max(len(entry["launches"]) for entry in plan["ranges"]),
            weight_bytes=sum(weight.stored_bytes for weight in weights) if hashes else 0,
            from_cache=self.cache.hits > 0,
            quality=quality,
            warnings=tuple(warnings),
        )

    def _write_tokenizer(self, out: OutputFolder) -> None:
        with self.progress.task("writing the tokenizer"):
            names = self.imported.export_tokenizer(out.folder / TOKENIZER)
        for name in sorted(names):
            out.adopt(f"{TOKENIZER}/{name}")

    def _write_weights(self, out: OutputFolder, weights: list[Weight], report: WeightReport | None) -> dict[str, str]:
        checkpoint = self.imported.checkpoint
        # What the frontend leaves out on purpose: frequencies, the second name of a tied tensor.
        by_design = set(checkpoint.names()) - set(self.imported.tensors.values())
        check_sources(weights, checkpoint, ignore=by_design)
        out.require_space(total_bytes(weights))
        with out.open(WEIGHTS) as part:
            return write_weights(weights, checkpoint, part.write, self.progress, report)
