// RUN: llmc-opt --llm-append-sampler %s | FileCheck %s
// RUN: llmc-opt --pass-pipeline="builtin.module(llm-pipeline-outline{sample=true},llm-pipeline-plan,llm-export-plan{output=-})" -o /dev/null %s | FileCheck %s --check-prefix=PLAN

// The parameters come behind the handles, the tokens behind the logits.
// CHECK: func.func @step({{.*}}, %[[TEMPERATURE:[^:]*]]: tensor<?xf32>, %[[TOP_K:[^:]*]]: tensor<?xi32>, %[[TOP_P:[^:]*]]: tensor<?xf32>, %[[MIN_P:[^:]*]]: tensor<?xf32>, %[[SEED:[^:]*]]: tensor<?xi64>, %[[INDEX:[^:]*]]: tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?xi32>)
// CHECK: %[[LOGITS:.*]] = llm.linear
// CHECK: %[[NEXT:.*]] = llm.sample %[[LOGITS]], %[[TEMPERATURE]], %[[TOP_K]], %[[TOP_P]], %[[MIN_P]], %[[SEED]], %[[INDEX]]
// CHECK: return %[[LOGITS]], %[[NEXT]]

// Kernels, buffers and inputs of the plan follow.
// PLAN: "anchor": "sample"
// PLAN: "input": "temperature"
// PLAN: "input": "sample_index"
// PLAN: "logits": 1
// PLAN-NEXT: "next_tokens": 2
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32> {
  %w = llm.weight @w : tensor<8x8xf32>
  %h = llm.embedding %rows, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %y = llm.linear %h, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">
