"""The phases of a compilation, in order.

`--emit`, its help text, the file names of `--dump-ir` and the driver's stop-after all come from
this enum.
"""

from __future__ import annotations

import enum


class Phase(enum.Enum):
    """One level of IR: `value` is its name on the command line, `summary` one sentence about it."""

    TORCH = "torch", "torch-mlir's import of the exported model, parameters as symbols"
    LLM = "llm", "the dense graph in the llm dialect: one sequence of T tokens, float32"
    KERNELS = "kernels", "paged, merged, typed; kernels outlined, the step is a list of launches"
    PLAN = "plan", "the same with an arena offset for every buffer"
    TILE = "tile", "one tile module per distinct GPU kernel"
    LLVM = "llvm", "the LLVM dialect of each kernel"
    PTX = "ptx", "PTX of each kernel (CPU targets: assembly)"
    ENGINE = "engine", "the engine folder"

    summary: str

    def __new__(cls, name: str, summary: str) -> Phase:
        member = object.__new__(cls)
        member._value_ = name
        member.summary = summary
        return member

    @property
    def index(self) -> int:
        return list(Phase).index(self)

    def reaches(self, other: Phase) -> bool:
        """Whether a compilation that stops after this phase runs `other`."""
        return self.index >= other.index

    @property
    def stage(self) -> str:
        """Its name in a `--dump-ir` folder; sorting by name is sorting by time."""
        return f"{self.index}-{self.value}"


#: What `--emit` accepts: everything before the engine.
EMITTABLE = tuple(phase for phase in Phase if phase is not Phase.ENGINE)


def find_phase(name: str) -> Phase:
    """The phase of that name."""
    return next(phase for phase in Phase if phase.value == name)


def emit_help() -> str:
    """The help text of `--emit`, one line a phase."""
    return "\n".join(f"{phase.value:8} {phase.summary}" for phase in EMITTABLE)
