"""From the torch dialect to `llm`, arith, math and tensor: one handler per torch operator, see `ops/`."""
