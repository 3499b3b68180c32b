//===- LlmDialect.td - the llm dialect ---------------------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_DIALECTS_LLM_LLMDIALECT_TD
#define LLMC_DIALECTS_LLM_LLMDIALECT_TD

include "mlir/IR/OpBase.td"

def Llm_Dialect : Dialect {
  let name = "llm";
  let cppNamespace = "::llmc::llm";
  let summary = "The graph of a decoder-only transformer step.";
  let description = [{
    The `llm` dialect describes one step of a decoder: rows of many requests go
    in, logits of some rows come out. Its values are builtin tensors whose
    leading dynamic dimension counts the tokens of the step; the batch dimension
    of the source model has been folded away. Elementwise arithmetic stays in
    `arith` and `math`, reshapes and slices in `tensor`; `llm` adds the ops that
    hardware and scheduling care about.

    Weights are symbols (`llm.parameter`), so a module of any size is a few
    kilobytes a layer. The KV cache and the ragged batch are handles, so the same
    module serves one request or hundreds.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"
  ];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

#endif // LLMC_DIALECTS_LLM_LLMDIALECT_TD
