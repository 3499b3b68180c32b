// Two layers of a Llama as llm-pipeline-optimize leaves them: paged, projections
// merged, bf16 weights and activations, float32 residual stream.
!kv = !llm.kv<heads = 3, head_dim = 64, v_head_dim = 64, block = 64, element = bf16>
!cache = !llm.kv_cache<2 x !llm.kv<heads = 3, head_dim = 64, v_head_dim = 64, block = 64, element = bf16>>

llm.parameter @embed : tensor<49152x576xbf16> from #llm.source<"model.embed_tokens.weight">
llm.parameter @inv_freq : tensor<32xf32> = dense<1.0> : tensor<32xf32>
llm.parameter @norm : tensor<576xf32> from #llm.source<"model.norm.weight">
llm.parameter @l0.norm1 : tensor<576xf32> from #llm.source<"l0.norm1">
llm.parameter @l0.norm2 : tensor<576xf32> from #llm.source<"l0.norm2">
llm.parameter @l0.qkv : tensor<960x576xbf16> from #llm.source<"l0.qkv">
llm.parameter @l0.o : tensor<576x576xbf16> from #llm.source<"l0.o">
llm.parameter @l0.gate_up : tensor<3072x576xbf16> from #llm.source<"l0.gate_up">
llm.parameter @l0.down : tensor<576x1536xbf16> from #llm.source<"l0.down">
llm.parameter @l1.norm1 : tensor<576xf32> from #llm.source<"l1.norm1">
llm.parameter @l1.norm2 : tensor<576xf32> from #llm.source<"l1.norm2">
llm.parameter @l1.qkv : tensor<960x576xbf16> from #llm.source<"l1.qkv">
llm.parameter @l1.o : tensor<576x576xbf16> from #llm.source<"l1.o">
llm.parameter @l1.gate_up : tensor<3072x576xbf16> from #llm.source<"l1.gate_up">
llm.parameter @l1.down : tensor<576x1536xbf16> from #llm.source<"l1.down">

func.func @step(%tokens: tensor<?xi32>, %positions: tensor<?xi32>, %logit_rows: tensor<?xi32>,
                %batch: !llm.batch, %kv: !cache) -> tensor<?x49152xf32> {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %tokens, %c0 : tensor<?xi32>
  %table = llm.weight @embed : tensor<49152x576xbf16>
  %h0 = llm.embedding %tokens, %table : tensor<?xi32>, tensor<49152x576xbf16> -> tensor<?x576xf32>
  %freq = llm.weight @inv_freq : tensor<32xf32>
  %cos, %sin = llm.rope_table %positions, %freq {attention_scaling = 1.0 : f64} : tensor<?xi32>, tensor<32xf32> -> tensor<?x32xf32>

  // Layer 0.
  %kv0 = llm.kv_layer %kv[0] : !cache -> !kv
  %n1w0 = llm.weight @l0.norm1 : tensor<576xf32>
  %n1_0 = llm.rms_norm %h0, %n1w0 {eps = 1.0e-5 : f64} : tensor<?x576xf32>, tensor<576xf32> -> tensor<?x576xbf16>
  %qkvw0 = llm.weight @l0.qkv : tensor<960x576xbf16>
  %qkv0 = llm.linear %n1_0, %qkvw0 : tensor<?x576xbf16>, tensor<960x576xbf16> -> tensor<?x960xbf16>
  %q0 = tensor.extract_slice %qkv0[0, 0] [%t, 576] [1, 1] : tensor<?x960xbf16> to tensor<?x576xbf16>
  %k0 = tensor.extract_slice %qkv0[0, 576] [%t, 192] [1, 1] : tensor<?x960xbf16> to tensor<?x192xbf16>
  %v0 = tensor.extract_slice %qkv0[0, 768] [%t, 192] [1, 1] : tensor<?x960xbf16> to tensor<?x192xbf16>
  %qh0 = tensor.expand_shape %q0 [[0], [1, 2]] output_shape [%t, 9, 64] : tensor<?x576xbf16> into tensor<?x9x64xbf16>
  %kh0 = tensor.expand_shape %k0 [[0], [1, 2]] output_shape [%t, 3, 64] : tensor<?x192xbf16> into tensor<?x3x64xbf16>
  %vh0 = tensor.expand_shape %v0 [[0], [1, 2]] output_shape [%t, 3, 64] : tensor<?x192xbf16> into tensor<?x3x64xbf16>
  %qr0 = llm.rope half %qh0, %cos, %sin : tensor<?x9x64xbf16>, tensor<?x32xf32> -> tensor<?x9x64xbf16>
  %kr0 = llm.rope half %kh0, %cos, %sin : tensor<?x3x64xbf16>, tensor<?x32xf32> -> tensor<?x3x64xbf16>
  llm.kv_append %kr0, %vh0, %kv0, %batch : tensor<?x3x64xbf16>, tensor<?x3x64xbf16>, !kv
  %a0 = llm.paged_attention %qr0, %kv0, %batch {scale = 0.125 : f64, causal} : tensor<?x9x64xbf16>, !kv -> tensor<?x9x64xbf16>
  %ac0 = tensor.collapse_shape %a0 [[0], [1, 2]] : tensor<?x9x64xbf16> into tensor<?x576xbf16>
  %ow0 = llm.weight @l0.o : tensor<576x576xbf16>
  %o0 = llm.linear %ac0, %ow0 : tensor<?x576xbf16>, tensor<576x576xbf16> -> tensor<?x576xf32>
  %h1 = arith.addf %h0, %o0 : tensor<?x576xf32>
  %n2w0 = llm.weight @l0.norm2 : tensor<576xf32>
  %n2_0 = llm.rms_norm %h1, %n2w0 {eps = 1.0e-5 : f64} : tensor<?x576xf32>, tensor<576xf32> -> tensor<?x576xbf16>
  %guw0 = llm.weight @l0.gate_up : tensor<3072x576xbf16>
  %gu0 = llm.linear %n2_0, %guw0 : tensor<?x576xbf16>, tensor<3072x576xbf16> -> tensor<?x3072xf32>
  %glu0 = llm.packed_glu silu interleaved %gu0 {block = 8 : i64} : tensor<?x3072xf32> -> tensor<?x1536xbf16>
  %dw0 = llm.weight @l0.down : tensor<576x1536xbf16>
  %d0 = llm.linear %glu0, %dw0 : tensor<?x1536xbf16>, tensor<576x1536xbf16> -> tensor<?x576xf32>
  %h2 = arith.addf %h1, %d0 : tensor<?x576xf32>

  // Layer 1.
  %kv1 = llm.kv_layer %kv[1] : !cache -> !kv
  %n1w1 = llm.weight @l1.norm1 : tensor<576xf32>
  %n1_1 = llm.rms_norm %h2, %n1w1 {eps = 1.0e-5 : f64} : tensor<?x576xf32>, tensor<576xf32> -> tensor<?x576xbf16>
  %qkvw1 = llm.weight @l1.qkv : tensor<960x576xbf16>
  %qkv1 = llm.linear %n1_1, %qkvw1 : tensor<?x576xbf16>, tensor<960x576xbf16> -> tensor<?x960xbf16>
  %q1 = tensor.extract_slice %qkv1[0, 0] [%t, 576] [1, 1] : tensor<?x960xbf16> to tensor<?x576xbf16>
  %k1 = tensor.extract_slice %qkv1[0, 576] [%t, 192] [1, 1] : tensor<?x960xbf16> to tensor<?x192xbf16>
  %v1 = tensor.extract_slice %qkv1[0, 768] [%t, 192] [1, 1] : tensor<?x960xbf16> to tensor<?x192xbf16>
  %qh1 = tensor.expand_shape %q1 [[0], [1, 2]] output_shape [%t, 9, 64] : tensor<?x576xbf16> into tensor<?x9x64xbf16>
  %kh1 = tensor.expand_shape %k1 [[0], [1, 2]] output_shape [%t, 3, 64] : tensor<?x192xbf16> into tensor<?x3x64xbf16>
  %vh1 = tensor.expand_shape %v1 [[0], [1, 2]] output_shape [%t, 3, 64] : tensor<?x192xbf16> into tensor<?x3x64xbf16>
  %qr1 = llm.rope half %qh1, %cos, %sin : tensor<?x9x64xbf16>, tensor<?x32xf32> -> tensor<?x9x64xbf16>
  %kr1 = llm.rope half %kh1, %cos, %sin : tensor<?x3x64xbf16>, tensor<?x32xf32> -> tensor<?x3x64xbf16>
  llm.kv_append %kr1, %vh1, %kv1, %batch : tensor<?x3x64xbf16>, tensor<?x3x64xbf16>, !kv
  %a1 = llm.paged_attention %qr1, %kv1, %batch {scale = 0.125 : f64, causal} : tensor<?x9x64xbf16>, !kv -> tensor<?x9x64xbf16>
  %ac1 = tensor.collapse_shape %a1 [[0], [1, 2]] : tensor<?x9x64xbf16> into tensor<?x576xbf16>
  %ow1 = llm.weight @l1.o : tensor<576x576xbf16>
  %o1 = llm.linear %ac1, %ow1 : tensor<?x576xbf16>, tensor<576x576xbf16> -> tensor<?x576xf32>
  %h3 = arith.addf %h2, %o1 : tensor<?x576xf32>
  %n2w1 = llm.weight @l1.norm2 : tensor<576xf32>
  %n2_1 = llm.rms_norm %h3, %n2w1 {eps = 1.0e-5 : f64} : tensor<?x576xf32>, tensor<576xf32> -> tensor<?x576xbf16>
  %guw1 = llm.weight @l1.gate_up : tensor<3072x576xbf16>
  %gu1 = llm.linear %n2_1, %guw1 : tensor<?x576xbf16>, tensor<3072x576xbf16> -> tensor<?x3072xf32>
  %glu1 = llm.packed_glu silu interleaved %gu1 {block = 8 : i64} : tensor<?x3072xf32> -> tensor<?x1536xbf16>
  %dw1 = llm.weight @l1.down : tensor<576x1536xbf16>
  %d1 = llm.linear %glu1, %dw1 : tensor<?x1536xbf16>, tensor<576x1536xbf16> -> tensor<?x576xf32>
  %h4 = arith.addf %h3, %d1 : tensor<?x576xf32>

  // The rows that need logits.
  %rows = llm.gather_rows %h4, %logit_rows : tensor<?x576xf32>, tensor<?xi32> -> tensor<?x576xf32>
  %nw = llm.weight @norm : tensor<576xf32>
  %n = llm.rms_norm %rows, %nw {eps = 1.0e-5 : f64} : tensor<?x576xf32>, tensor<576xf32> -> tensor<?x576xbf16>
  %head = llm.weight @embed : tensor<49152x576xbf16>
  %logits = llm.linear %n, %head : tensor<?x576xbf16>, tensor<49152x576xbf16> -> tensor<?x49152xf32>
  return %logits : tensor<?x49152xf32>
}
