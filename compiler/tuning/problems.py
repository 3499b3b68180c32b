"""The linears to tune: named one by one, or those of a model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from llmc.errors import OptionError, TargetError

if TYPE_CHECKING:
    from llmc.codegen.sm90.linear_schedule import LinearProblem

_NAME = re.compile(r"(\d+)x(\d+):(\w+)(:f8)?")


def parse(text: str) -> LinearProblem:
    """`NxK:EPILOGUE`, as in `4096x14336:residual`; `:f8` behind it for 8-bit floats. Raises OptionError."""
    from llmc.codegen.sm90.linear_schedule import EPILOGUES, LinearProblem

    match = _NAME.fullmatch(text)
    if match is None or match[3] not in EPILOGUES:
        raise OptionError(
            f"--linear {text}: expected NxK:EPILOGUE or NxK:EPILOGUE:f8 with one of {', '.join(EPILOGUES)}"
        )
    n, k, element_bytes = int(match[1]), int(match[2]), 1 if match[4] else 2
    whole = 16 // element_bytes
    if not n or not k or k % whole or (match[3] == "glu" and n % 16):
        raise OptionError(
            f"--linear {text}: expected a K of a multiple of {whole}, and for glu an N of a multiple of 16"
        )
    return LinearProblem(n, k, match[3], element_bytes=element_bytes)


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
    return f"{problem.n}x{problem.k}:{problem.epilogue}" + (":f8" if problem.element_bytes == 1 else "")


def kernel_text(problem: LinearProblem) -> str:
    """The canonical `llm.kernel` of a problem: nothing but its epilogue.

    Operands: x, w; of 8-bit floats the scales of w and of x; the residual.
    """
    n, k, kind = problem.n, problem.k, problem.epilogue
    dtype, suffix = ("f8E4M3FN", "_f8") if problem.element_bytes == 1 else ("bf16", "")
    x, w = f"tensor<?x{k}x{dtype}>", f"tensor<{n}x{k}x{dtype}>"
    wide, of_w, of_x = f"tensor<?x{n}xf32>", f"tensor<{n}x1xf32>", "tensor<?x1xf32>"
    out = {"16bit": f"tensor<?x{n}xbf16>", "glu": f"tensor<?x{n // 2}xbf16>"}.get(kind, wide)
    arguments, multiply = [f"%x: {x}", f"%w: {w}"], "llm.linear %x, %w"
    if problem.element_bytes == 1:
        arguments += [f"%ws: {of_w}", f"%xs: {of_x}"]
        multiply = f"llm.scaled_linear %x, %w weight_scale(%ws : {of_w}) input_scale(%xs : {of_x})"
    if kind == "residual":
        arguments.append(f"%h: {wide}")
        lines = [f"  %y = {multiply} : {x}, {w} -> {wide}", f"  %r = arith.addf %h, %y : {wide}"]
    elif kind == "glu":
        lines = [
            f"  %y = {multiply} : {x}, {w} -> {wide}",
            f"  %r = llm.packed_glu silu interleaved %y {{block = 8 : i64}} : {wide} -> {out}",
        ]
    else:
        lines = [f"  %r = {multiply} : {x}, {w} -> {out}"]
    body = "\n".join(lines)
    return (
        f"llm.kernel @linear_{n}x{k}_{kind}{suffix}({', '.join(arguments)}) -> ({out}) "
        f'attributes {{anchor = "linear"}} {{\n{body}\n  llm.yield %r : {out}\n}}\n'
    )
