"""The `llm` and `tile` dialects inside the ordinary `mlir` package.

There is one MLIR in the process: `mlir.ir.Context` comes from the `mlir`
package, `register(context)` loads llmc's dialects into it, and
`mlir.passmanager.PassManager.parse` knows llmc's passes.
"""

from mlir import ir
from mlir._mlir_libs import _mlir

# After `mlir`: the extension links the shared library behind it.
from . import _llmc_mlir

_mlir.globals.append_dialect_search_prefix(__name__)
_llmc_mlir.register_passes()


def register(context: ir.Context) -> ir.Context:
    """Loads llmc's dialects into `context` and returns it."""
    _llmc_mlir.register_dialects(context)
    return context
