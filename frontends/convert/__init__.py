"""From the torch dialect to `llm`, arith, math and tensor: one handler per torch operator, see `ops/`."""

from llmc.frontends.convert.module import convert_module

__all__ = ["convert_module"]
