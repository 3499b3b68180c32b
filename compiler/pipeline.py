"""The pass pipelines of each phase, and the runner that turns a failure into a reproducer."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shlex
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmc.compiler.errors import CompileError, InternalError, ModelError
from llmc.compiler.options import ResolvedOptions
from llmc.compiler.phases import Phase

if TYPE_CHECKING:
    from mlir import ir

#: Passes whose diagnostics are about the user's model, not about llmc.
_CHECKS_OF_THE_MODEL = ("llm-verify-contract", "llm-raise-rope", "llm-convert-to-paged", "llm-form-kernels")


def kernel_passes(options: ResolvedOptions) -> list[str]:
    """Dense graph to outlined kernels. The named pipelines are flat lists in passes/Pipelines.cpp."""
    precision = f"weights={options.weight_dtype} activations={options.activation_dtype} kv={options.kv_cache_dtype}"
    return [
        "llm-pipeline-raise",
        f"llm-pipeline-batch{{block-size={options.block_size}}}",
        f"llm-pipeline-optimize{{{precision} glu-block={options.target.glu_block}}}",
        *(["llm-append-sampler"] if options.target.samples_on_device else []),
        "llm-form-kernels",
        "llm-outline-kernels",
    ]


def plan_passes(limits: dict[str, int]) -> list[str]:
    """Outlined kernels to arena offsets, proved by a pass that shares no decision with the planner."""
    sizes = f"max-num-tokens={limits['max_num_tokens']} max-batch-size={limits['max_batch_size']}"
    return [f"llm-plan-memory{{{sizes}}}", "llm-check-memory-plan"]


def export_plan(module: ir.Module) -> dict[str, Any]:
    """The abstract plan (docs/plan-export.md) of a planned module, as a JSON value."""
    from mlir import ir
    from mlir.passmanager import PassManager

    with module.context:
        PassManager.parse("builtin.module(llm-export-plan)").run(module.operation)
        attributes = module.operation.attributes
        text = ir.StringAttr(attributes["llm.plan"]).value
        del attributes["llm.plan"]
    return json.loads(text)


class IrDump:
    """Writes the IR after each phase and after each pass into a folder (`--dump-ir`)."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._count = 0
        folder.mkdir(parents=True, exist_ok=True)

    def phase(self, phase: Phase, text: str, suffix: str = "mlir") -> None:
        (self._folder / phase.dump_name(suffix)).write_text(text, encoding="utf-8")
        self._count = 0

    def after_pass(self, phase: Phase, name: str, text: str) -> None:
        folder = self._folder / f"{phase.index}-{phase.value}"
        folder.mkdir(exist_ok=True)
        self._count += 1
        (folder / f"{self._count:02}-{name}.mlir").write_text(text, encoding="utf-8")


@dataclasses.dataclass
class PassRunner:
    """Runs passes one by one, so that a failure knows the IR in front of the pass that failed.

    reproducer_dir: where reproducers go; None is the folder for temporary files.
    """

    dump: IrDump | None = None
    reproducer_dir: Path | None = None

    def run(self, module: ir.Module, phase: Phase, passes: Iterable[str]) -> None:
        """Runs `passes` (textual, named pipelines allowed) on `module` in place.

        Raises InternalError with a reproducer, or ModelError when the pass checks the model.
        """
        with module.context:
            singles = [single for text in passes for single in _expand(text)]
        for single in singles:
            self._run_single(module, phase, single)
        if self.dump:
            self.dump.phase(phase, str(module))

    def _run_single(self, module: ir.Module, phase: Phase, text: str) -> None:
        from mlir import ir
        from mlir.passmanager import PassManager

        name = _name(text)
        before = module.operation.get_asm(enable_debug_info=True)
        with module.context:
            manager = PassManager.parse(f"builtin.module({text})")
            try:
                manager.run(module.operation)
            except ir.MLIRError as error:
                raise self._failure(name, text, before, error) from None
        if self.dump:
            self.dump.after_pass(phase, name, str(module))

    def _failure(self, name: str, text: str, before: str, error: ir.MLIRError) -> CompileError:
        if name in _CHECKS_OF_THE_MODEL:
            return ModelError(messages(error, with_ops=False))
        path = write_reproducer(before, text, self.reproducer_dir)
        return InternalError(f"pass {name} failed: {messages(error)}\nreplay it with: {reproducer_command(path)}", path)


def write_reproducer(module_text: str, passes: str, folder: Path | None = None) -> Path:
    """Writes a file that `llmc-opt --run-reproducer` replays; equal failures share one file."""
    content = (
        f"{module_text.rstrip()}\n\n"
        "{-#\n  external_resources: {\n    mlir_reproducer: {\n"
        f'      pipeline: "builtin.module({_escape(passes)})",\n'
        "      disable_threading: true,\n      verify_each: true\n    }\n  }\n#-}\n"
    )
    return write_text("llmc-reproducer-", ".mlir", content, folder)


def write_text(prefix: str, suffix: str, text: str, folder: Path | None = None) -> Path:
    """Writes a file named by its content into `folder` (None: that for temporary files)."""
    folder = folder or Path(tempfile.gettempdir())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{prefix}{hashlib.sha256(text.encode()).hexdigest()[:12]}{suffix}"
    path.write_text(text, encoding="utf-8")
    return path


def reproducer_command(path: Path) -> str:
    """The command line that replays a reproducer."""
    return f"llmc-opt --run-reproducer {shlex.quote(str(path))}"


def _expand(text: str) -> Sequence[str]:
    """The single passes of a textual pipeline; named pipelines become their passes."""
    from mlir.passmanager import PassManager

    try:
        expanded = str(PassManager.parse(f"builtin.module({text})"))
    except ValueError as error:
        raise InternalError(f"malformed pipeline {text}: {error}") from None
    return split_pipeline(expanded.partition("(")[2].rpartition(")")[0])


def split_pipeline(text: str) -> list[str]:
    """Splits at commas outside brackets: `a,b{x=1,2},func.func(c,d)` are three passes."""
    passes, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += character in "({<["
        depth -= character in ")}>]"
        if character == "," and depth == 0:
            passes.append(text[start:at])
            start = at + 1
    passes.append(text[start:])
    return [single.strip() for single in passes if single.strip()]


def _name(text: str) -> str:
    """A short name of a pass for messages and files: no options, no nesting."""
    bare = re.sub(r"\{[^{}]*\}", "", text)
    return re.split(r"[(),]", bare.removeprefix("func.func("))[0]


def messages(error: ir.MLIRError, with_ops: bool = True) -> str:
    """The diagnostics of a failure, one a line, with places and notes; `with_ops` keeps MLIR's prints of ops."""
    lines = []
    for diagnostic in error.error_diagnostics:
        lines.append(f"{diagnostic.message} [{_place(diagnostic.location)}]")
        notes = (note.message for note in diagnostic.notes)
        lines += [f"  note: {note}" for note in notes if with_ops or not note.startswith("see current operation")]
    return "\n".join(lines) or str(error)


def _place(location: ir.Location) -> str:
    text = str(location)
    return text.removeprefix("loc(").removesuffix(")")


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
