"""From the torch dialect to `llm`, arith, math and tensor: one handler per torch operator, see `ops/`."""

# The order matters: see AGENTS.md, "two LLVMs".
import mlir.ir  # noqa: F401
