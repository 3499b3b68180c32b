"""Runs passes on MLIR modules; a pass that fails leaves a file that `llmc-opt` replays.

Used by the compiler and the code generators alike.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import shlex
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from mlir import ir
from mlir.passmanager import PassManager

from llmc.errors import InternalError

#: What a failing pass means where it is not a bug: (name of the pass, its messages) to an exception, or None.
Refusal = Callable[[str, str], Exception | None]


class IrDump:
    """Writes IR into a folder: of each stage, and of each pass in a folder of its stage."""

    def __init__(self, folder: Path):
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, text: str) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@dataclasses.dataclass(frozen=True)
class PassRunner:
    """Runs passes so that a failure names the pass and leaves the IR in front of it.

    reproducer_dir: where reproducers go; None is the folder for temporary files.
    """

    dump: IrDump | None = None
    reproducer_dir: Path | None = None

    def run(self, module: ir.Module, stage: str, passes: Iterable[str], refusal: Refusal | None = None) -> None:
        """Runs `passes` (textual, named pipelines allowed) on `module` in place.

        stage:   a name for the dump, which may hold slashes.
        refusal: turns a failure into an exception about the input.

        Raises what `refusal` gives, or InternalError with a reproducer.
        """
        with module.context:
            singles = [single for text in passes for single in _expand(text)]
        if self.dump:
            self._one_by_one(module, stage, singles, refusal)
            self.dump.write(f"{stage}.mlir", str(module))
            return
        before = module.operation.get_asm(enable_debug_info=True)
        try:
            _run(module, ",".join(singles))
        except ir.MLIRError as error:
            # Once more from the start, pass by pass: what failed, and on what?
            with module.context:
                again = ir.Module.parse(before)
            self._one_by_one(again, stage, singles, refusal)
            raise self._failure(",".join(singles), before, error, refusal) from None

    def verify(self, module: ir.Module, what: str) -> None:
        """Raises InternalError with the module in a file when it is not valid."""
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            text = module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True, assume_verified=True)
            path = write_text("llmc-invalid-", ".mlir", text, self.reproducer_dir)
            raise InternalError(
                f"{what} is not valid: {messages(error)}\nsee it with: llmc-opt {shlex.quote(str(path))}", path
            ) from None

    def _one_by_one(self, module: ir.Module, stage: str, singles: list[str], refusal: Refusal | None) -> None:
        for number, single in enumerate(singles, 1):
            before = module.operation.get_asm(enable_debug_info=True)
            try:
                _run(module, single)
            except ir.MLIRError as error:
                raise self._failure(single, before, error, refusal) from None
            if self.dump:
                self.dump.write(f"{stage}/{number:02}-{_name(single)}.mlir", str(module))

    def _failure(self, passes: str, before: str, error: ir.MLIRError, refusal: Refusal | None) -> Exception:
        name = _name(passes)
        if refusal and (refused := refusal(name, messages(error, with_ops=False))):
            return refused
        path = write_reproducer(before, passes, self.reproducer_dir)
        return InternalError(f"pass {name} failed: {messages(error)}\nreplay it with: {reproducer_command(path)}", path)


#: Dumps nothing; reproducers go to the folder for temporary files.
PLAIN = PassRunner()


def clone(module: ir.Module) -> ir.Module:
    """A copy that shares nothing with `module` but the context."""
    with module.context, module.operation.location:
        copy = ir.Module.create()
        for op in module.body.operations:
            copy.body.append(op.operation.clone())
        for attribute in module.operation.attributes:
            copy.operation.attributes[attribute.name] = attribute.attr
    return copy


def _run(module: ir.Module, passes: str) -> None:
    with module.context:
        PassManager.parse(f"builtin.module({passes})").run(module.operation)


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
    bare, found = text, 1
    while found:  # lists of an option are in brackets of their own
        bare, found = re.subn(r"\{[^{}]*\}", "", bare)
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
