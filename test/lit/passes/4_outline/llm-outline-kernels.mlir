// RUN: llmc-opt --llm-outline-kernels --split-input-file %s | FileCheck %s
// RUN: llmc-opt --llm-pipeline-outline %S/Inputs/llama_step.mlir | FileCheck %s --check-prefix=LLAMA

// Both layers of a Llama share their kernels, and @step holds launches only.
// LLAMA-COUNT-11: llm.kernel
// LLAMA-NOT: llm.kernel
// LLAMA-LABEL: func.func @step
// LLAMA: llm.launch @embedding_0
// LLAMA: llm.launch @rope_table_0
// LLAMA: llm.launch @norm_0
// LLAMA: llm.launch @linear_0
// LLAMA: llm.launch @rope_append_0
// LLAMA: llm.launch @attention_0
// LLAMA: llm.launch @linear_1
// LLAMA: llm.launch @norm_0
// LLAMA: llm.launch @linear_2
// LLAMA: llm.launch @linear_3
// LLAMA: llm.launch @norm_0
// LLAMA: llm.launch @linear_0
// LLAMA: llm.launch @rope_append_0
// LLAMA: llm.launch @attention_0
// LLAMA: llm.launch @linear_1
// LLAMA: llm.launch @norm_0
// LLAMA: llm.launch @linear_2
// LLAMA: llm.launch @linear_3
// LLAMA: llm.launch @norm_1
// LLAMA: llm.launch @linear_4
// LLAMA-NEXT: return

// Arguments come in the order of first use; a value used twice is one argument.
// CHECK: llm.kernel @linear_0(%[[X:.*]]: tensor<?x8xf32>, %[[W:.*]]: tensor<8x8xf32>) -> tensor<?x8xf32>
// CHECK-SAME: anchor = "linear"
// CHECK-NEXT: %[[Y:.*]] = llm.linear %[[X]], %[[W]]
// CHECK-NEXT: %[[Z:.*]] = arith.addf %[[X]], %[[Y]]
// CHECK-NEXT: llm.yield %[[Z]]
// CHECK: func.func @step
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !llm.kv_cache<>) -> tensor<?x8xf32> {
  %w = llm.weight @w : tensor<8x8xf32>
  %h = llm.group "embedding" -> tensor<?x8xf32> {
    %0 = llm.embedding %tokens, %w : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
    llm.yield %0 : tensor<?x8xf32>
  }
  // CHECK: %[[H:.*]] = llm.launch @embedding_0(%arg0, %{{.*}})
  // CHECK: %[[A:.*]] = llm.launch @linear_0(%[[H]], %{{.*}})
  %a = llm.group "linear" -> tensor<?x8xf32> {
    %0 = llm.linear %h, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
    %1 = arith.addf %h, %0 : tensor<?x8xf32>
    llm.yield %1 : tensor<?x8xf32>
  }
  // CHECK: %[[B:.*]] = llm.launch @linear_0(%[[A]], %{{.*}})
  %b = llm.group "linear" -> tensor<?x8xf32> {
    %0 = llm.linear %a, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
    %1 = arith.addf %a, %0 : tensor<?x8xf32>
    llm.yield %1 : tensor<?x8xf32>
  }
  // The residual is another value here, so this kernel differs.
  // CHECK: %[[C:.*]] = llm.launch @linear_1(%[[B]], %{{.*}}, %[[A]])
  %c = llm.group "linear" -> tensor<?x8xf32> {
    %0 = llm.linear %b, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
    %1 = arith.addf %a, %0 : tensor<?x8xf32>
    llm.yield %1 : tensor<?x8xf32>
  }
  // An attribute makes kernels differ too.
  // CHECK: llm.launch @norm_0
  // CHECK: llm.launch @norm_1
  // CHECK: llm.launch @norm_0
  %n0 = llm.group "norm" -> tensor<?x8xf32> {
    %0 = llm.rms_norm %c {eps = 1.0e-5 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
    llm.yield %0 : tensor<?x8xf32>
  }
  %n1 = llm.group "norm" -> tensor<?x8xf32> {
    %0 = llm.rms_norm %n0 {eps = 1.0e-6 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
    llm.yield %0 : tensor<?x8xf32>
  }
  %n2 = llm.group "norm" -> tensor<?x8xf32> {
    %0 = llm.rms_norm %n1 {eps = 1.0e-5 : f64} : tensor<?x8xf32> -> tensor<?x8xf32>
    llm.yield %0 : tensor<?x8xf32>
  }
  return %n2 : tensor<?x8xf32>
}
llm.parameter @w : tensor<8x8xf32> from #llm.source<"w">

// -----

// A group without results becomes a launch that only writes the cache.
!kv = !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>
!cache = !llm.kv_cache<2 x !llm.kv<heads = 1, head_dim = 8, v_head_dim = 8, block = 16, element = f32>>
// CHECK: func.func @step
func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !cache) {
  %w = llm.weight @w : tensor<4x1x8xf32>
  // CHECK: %[[LAYER:.*]] = llm.kv_layer %arg4[1]
  %layer = llm.kv_layer %kv[1] : !cache -> !kv
  // CHECK: llm.launch @rope_append_0(%{{.*}}, %[[LAYER]], %arg3) : {{.*}} -> ()
  llm.group "rope_append" {
    llm.kv_append %w, %w, %layer, %batch : tensor<4x1x8xf32>, tensor<4x1x8xf32>, !kv
    llm.yield
  }
  return
}
llm.parameter @w : tensor<4x1x8xf32> from #llm.source<"w">
