"""The linears to tune: named one by one, or those of a model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from llmc.errors import OptionError, TargetError

if TYPE_CHECKING:
    from llmc.codegen.sm90.linear_schedule import LinearProblem

_NAME = re.compile(r"(\d+)x(\d+):(\w+)")


def parse(text: str) -> LinearProblem:
    """`NxK:EPILOGUE`, as in `4096x14336:residual`. Raises OptionError."""
    from llmc.codegen.sm90.linear_schedule import EPILOGUES, LinearProblem

    match = _NAME.fullmatch(text)
    if match is None or match[3] not in EPILOGUES:
        raise OptionError(f"--linear {text}: expected NxK:EPILOGUE with one of {', '.join(EPILOGUES)}")
    n, k = int(match[1]), int(match[2])
    if not n or not k or k % 8 or (match[3] == "glu" and n % 16):
        raise OptionError(f"--linear {text}: expected a K of a multiple of 8, and for glu an N of a multiple of 16")
    return LinearProblem(n, k, match[3])


def of_model(model: Path, target: str) -> list[LinearProblem]:
    """The linears of a checkpoint or of a bare config.json, as the compiler merges and fuses them.

    Raises CompileError for a model that llmc cannot compile.
    """
    from mlir import ir

    from llmc.codegen.gpu.body import Body
    from llmc.codegen.gpu.linear_body import LinearBody
    from llmc.codegen.sm90.linear_schedule import LinearProblem
    from llmc.compiler.driver import Compilation
    from llmc.compiler.options import CompileOptions

    module = Compilation(model, CompileOptions(target=target, strip_weights=True)).outlined
    found = []
    with module.context:
        for op in module.body.operations:
            if op.operation.name == "llm.kernel" and ir.StringAttr(op.attributes["anchor"]).value == "linear":
                found.append(LinearProblem.of(LinearBody(Body(op))))
    return list(dict.fromkeys(found))


def check_target(name: str) -> None:
    """Raises TargetError for a target whose kernels have no schedules."""
    from llmc.compiler.targets import find_target

    if find_target(name).arch != "sm_90a":
        raise TargetError(f"--target {name}: expected sm_90, the only target whose schedules are measured")


def name_of(problem: LinearProblem) -> str:
    return f"{problem.n}x{problem.k}:{problem.epilogue}"


def kernel_text(problem: LinearProblem) -> str:
    """The canonical `llm.kernel` of a problem: bf16 operands, and nothing but its epilogue."""
    n, k, kind = problem.n, problem.k, problem.epilogue
    x, w = f"tensor<?x{k}xbf16>", f"tensor<{n}x{k}xbf16>"
    wide = f"tensor<?x{n}xf32>"
    out = {"16bit": f"tensor<?x{n}xbf16>", "glu": f"tensor<?x{n // 2}xbf16>"}.get(kind, wide)
    residual = f", %h: {wide}" if kind == "residual" else ""
    lines: Iterable[str] = [f"  %r = llm.linear %x, %w : {x}, {w} -> {out}"]
    if kind == "residual":
        lines = [f"  %y = llm.linear %x, %w : {x}, {w} -> {wide}", f"  %r = arith.addf %h, %y : {wide}"]
    if kind == "glu":
        lines = [
            f"  %y = llm.linear %x, %w : {x}, {w} -> {wide}",
            f"  %r = llm.packed_glu silu interleaved %y {{block = 8 : i64}} : {wide} -> {out}",
        ]
    body = "\n".join(lines)
    name = f"linear_{n}x{k}_{kind}"
    return (
        f'llm.kernel @{name}(%x: {x}, %w: {w}{residual}) -> ({out}) attributes {{anchor = "linear"}} {{\n'
        f"{body}\n  llm.yield %r : {out}\n}}\n"
    )
