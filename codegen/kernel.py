"""What code generation hands to the driver, for any target.

A `CompiledKernel` is one `llm.kernel` in machine code: variants by token count, each a list of
launches. Grids are size expressions and arguments are the JSON of docs/architecture.md,
section 2: `{"operand": 0}`, `{"operand": 1, "part": "k"}`, `{"result": 0}`, `{"workspace": 0}`,
`{"zeroed": true}`, `{"i32": "T"}`, `{"f32": 1.0}`, `{"tensor_map": {...}}`. The driver binds them to
buffers when it writes the plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from mlir import ir

    from llmc.passes import PassRunner

Expression: TypeAlias = "int | str | list[Any]"
"""An integer, a size, or `[op, a, b]`; see docs/engine-format.md.

Sizes are those of the plan (`T`, `S`, `R`, `NB`, `B`) and `rows`: the leading size of the kernel's
first result, `T` or `R` from launch to launch. R never exceeds T. `max_rows` is the most rows
that `rows` can be, an integer after binding, so that tensor maps may use it.
"""

Argument = dict[str, Any]


def ceildiv(size: Expression, divisor: int) -> Expression:
    if isinstance(size, int):
        return -(-size // divisor)
    return size if divisor == 1 else ["ceildiv", size, divisor]


def mul(a: Expression, b: Expression) -> Expression:
    if a == 1 or b == 1:
        return b if a == 1 else a
    return a * b if isinstance(a, int) and isinstance(b, int) else ["mul", a, b]


@dataclass(frozen=True)
class CodeObject:
    """One file of the engine's kernels/ folder.

    `kind` is 'cubin' (one kernel) or 'host' (a shared library of many kernels).
    """

    kind: str
    data: bytes


@dataclass(frozen=True)
class Entry:
    """A callable of a code object and the facts needed to launch it.

    `block` and `cluster` count threads and blocks; `shared_bytes` is dynamic shared memory;
    `registers` and `spill_bytes` are what ptxas reported (None on the host).
    """

    name: str
    code: CodeObject
    block: tuple[int, int, int] = (1, 1, 1)
    cluster: tuple[int, int, int] = (1, 1, 1)
    shared_bytes: int = 0
    pdl: bool = False
    registers: int | None = None
    spill_bytes: int | None = None

    def description(self) -> dict[str, Any]:
        """The kernel entry of plan.json, less `code` (an index) and `anchor`."""
        return {
            "name": self.name,
            "entry": self.name,
            "block": list(self.block),
            "cluster": list(self.cluster),
            "shared_bytes": self.shared_bytes,
            "pdl": self.pdl,
            "registers": self.registers,
        }


@dataclass(frozen=True)
class Launch:
    """One launch: an entry, its grid (expressions over T, S, R) and its arguments in order."""

    entry: Entry
    grid: tuple[Expression, Expression, Expression]
    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class Variant:
    """How a kernel runs for `min_tokens <= T <= max_tokens` (None: no upper end).

    `workspace_bytes` is scratch memory at the engine's limits, 256-byte aligned, shared by
    the variant's launches. `zeroed_bytes` is memory that all kernels of an engine share; it is zero
    when the engine is loaded, and each launch leaves it zero.
    """

    launches: tuple[Launch, ...]
    min_tokens: int = 1
    max_tokens: int | None = None
    workspace_bytes: int = 0
    zeroed_bytes: int = 0


@dataclass(frozen=True)
class CompiledKernel:
    """An `llm.kernel` in machine code; its variants cover every token count without overlap."""

    name: str
    anchor: str
    variants: tuple[Variant, ...]
    ir: dict[str, str] = field(default_factory=dict)
    """Text by level for `--emit`: 'tile', 'llvm', 'ptx'."""

    @property
    def workspace_bytes(self) -> int:
        return max(variant.workspace_bytes for variant in self.variants)

    @property
    def zeroed_bytes(self) -> int:
        return max(variant.zeroed_bytes for variant in self.variants)


class UnsupportedKernel(Exception):
    """A code generator has no code for a kernel; the message names the kernel and what it may hold."""


class CodeGenerator(Protocol):
    """What a package of kernels for a kind of target offers."""

    def layout_passes(self, target: Any) -> list[str]:
        """Passes for an outlined module by which the target chooses how weights are stored."""

    def compile_kernels(
        self, module: ir.Module, target: Any, limits: dict[str, int], runner: PassRunner
    ) -> Iterable[CompiledKernel]:
        """Machine code of every `llm.kernel` of an outlined module, in order.

        target: a `llmc.compiler.targets.Target`.
        limits: the manifest's; grids, tensor maps and workspaces may depend on them.
        Raises UnsupportedKernel, and InternalError with a reproducer where a pass fails.
        """
