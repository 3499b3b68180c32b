// RUN: llmc-opt --llm-plan-memory --split-input-file --verify-diagnostics %s

// Operands that count tokens and logit rows leave open which of them the result has.
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?xi32> {
  // expected-error @below {{cannot derive dimension 0 of result #0, a 'tensor<?xi32>', from the arguments of @step}}
  %a = llm.launch @elementwise_0(%tokens, %rows) : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
  return %a : tensor<?xi32>
}
llm.kernel @elementwise_0(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> attributes {anchor = "elementwise"} {
  %0 = arith.addi %a, %b : tensor<?xi32>
  llm.yield %0 : tensor<?xi32>
}

// -----

// expected-error @below {{expected a function @step}}
module {
}
