"""A code generator that generates no code, for tests of everything around it."""

from __future__ import annotations

from mlir import ir

from llmc.codegen.kernel import CodeObject, CompiledKernel, Entry, Launch, Variant


class StandInGenerator:
    """One launch for each kernel, with all of its operands and results as arguments."""

    @staticmethod
    def layout_passes(target):
        return []

    @staticmethod
    def compile_kernels(module, target, limits, runner):
        code = CodeObject("host" if target.is_cpu else "cubin", b"stand-in")
        for op in module.body.operations:
            if op.operation.name == "llm.kernel":
                yield StandInGenerator.kernel(op.operation, code)

    @staticmethod
    def kernel(op, code):
        name = ir.StringAttr(op.attributes["sym_name"]).value
        anchor = ir.StringAttr(op.attributes["anchor"]).value
        function = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        arguments = [StandInGenerator.operand(i, type) for i, type in enumerate(function.inputs)]
        arguments += [{"result": i} for i in range(len(function.results))]
        launch = Launch(Entry(name, code), (["ceildiv", "rows", 16], 1, 1), tuple(arguments))
        return CompiledKernel(name, anchor, (Variant((launch,), workspace_bytes=256),), {"llvm": f"// {name}"})

    @staticmethod
    def operand(i, type):
        text = str(type)
        if text.startswith("!llm.kv"):
            return {"operand": i, "part": "k"}
        if text.startswith("!llm.batch"):
            return {"operand": i, "part": "slots"}
        return {"operand": i}
