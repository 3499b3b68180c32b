"""From a torch module to a module of the torch dialect."""

# The order matters: see AGENTS.md, "two LLVMs".
import mlir.ir  # noqa: F401
