"""The driver: one method a phase, each of which runs once and on demand."""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmc.compiler import pipeline
from llmc.compiler.cache import KernelCache, default_cache_dir
from llmc.compiler.errors import ModelError, OptionError, TargetError
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
from llmc.compiler.parameters import read_parameters
from llmc.compiler.phases import Phase
from llmc.compiler.plan import build_plan, referenced_weights
from llmc.compiler.progress import SILENT, Progress
from llmc.compiler.weights import Weight, check_sources, total_bytes, write_weights

if TYPE_CHECKING:
    from mlir import ir

    from llmc.frontends import ImportedModel


@dataclasses.dataclass(frozen=True)
class EngineSummary:
    """What a compilation wrote."""

    output: Path
    target: str
    kernels: int
    launches: int
    weight_bytes: int
    cache_hits: int

    def __str__(self) -> str:
        return (
            f"{self.output}: {self.target}, {self.kernels} kernels ({self.cache_hits} from the cache), "
            f"{self.launches} launches a step, {self.weight_bytes / 1e6:,.0f} MB of weights"
        )


class Compilation:
    """One model, one set of options.

    model:    path of a Hugging Face folder or .gguf file.
    dump_dir: where to write the IR after every phase and pass; None: nowhere.

    Raises CompileError (see llmc.compiler.errors) for everything that the user can put right.
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
        self._progress = progress
        self._dump = pipeline.IrDump(dump_dir) if dump_dir else None
        self._runner = pipeline.PassRunner(self._dump)
        folder = (self.options.cache_dir or default_cache_dir()) if self.options.use_cache else None
        self.cache = KernelCache(folder)
        self._keep_torch = dump_dir is not None

    # ---- phases -------------------------------------------------------------

    @functools.cached_property
    def imported(self) -> ImportedModel:
        """Phases torch and llm: the checkpoint as a dense graph."""
        from llmc.frontends import FrontendError, ImportOptions, import_checkpoint

        options = ImportOptions(max_seq_len=self.options.max_seq_len, keep_torch=self._keep_torch)
        try:
            with self._progress.task(f"importing {self.model.name}"):
                imported = import_checkpoint(self.model, options)
        except FrontendError as error:
            raise ModelError(str(error)) from None
        if self._dump:
            self._dump.phase(Phase.TORCH, imported.torch_text or "")
            self._dump.phase(Phase.LLM, str(imported.module))
        return imported

    @functools.cached_property
    def outlined(self) -> ir.Module:
        """Phase kernels: the step as a list of launches of outlined kernels."""
        module = self.imported.module
        with self._progress.task("optimising"):
            self._runner.run(module, Phase.KERNELS, pipeline.kernel_passes(self.resolved))
        return module

    @functools.cached_property
    def planned(self) -> ir.Module:
        """Phase plan: every buffer has its place in the arena."""
        module = self.outlined
        with self._progress.task("planning memory"):
            self._runner.run(module, Phase.PLAN, pipeline.plan_passes(self.resolved, self.limits))
        return module

    @functools.cached_property
    def limits(self) -> dict[str, int]:
        """The manifest's limits. Raises OptionError when the model cannot reach max_seq_len."""
        reach = getattr(self.imported.config.get_text_config(), "max_position_embeddings", None)
        wanted = self.options.max_seq_len
        if wanted is None and reach is None:
            raise OptionError("the model has no length limit of its own: set --max_seq_len")
        if wanted is not None and reach is not None and wanted > reach:
            raise OptionError(
                f"--max_seq_len {wanted}: the model was made for at most {reach} tokens (max_position_embeddings)"
            )
        return limits_of(self.options, wanted or reach, self.resolved.block_size)
