"""What holds for all Python tests."""

# The order matters: see AGENTS.md, "two LLVMs".
import mlir.ir  # noqa: F401
