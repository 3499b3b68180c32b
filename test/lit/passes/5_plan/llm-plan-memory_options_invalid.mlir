// RUN: not llmc-opt --llm-plan-memory="max-num-tokens=0" %s 2>&1 | FileCheck %s --check-prefix=LIMITS
// RUN: not llmc-opt --llm-plan-memory="alignment=48" %s 2>&1 | FileCheck %s --check-prefix=ALIGNMENT

// LIMITS: error: expected max-num-tokens and max-batch-size of 1 or more, got 0 and 32
// ALIGNMENT: error: expected an alignment that is a power of two, got 48
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) {
  return
}
