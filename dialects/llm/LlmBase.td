//===- LlmBase.td - what all llm ops share -----------------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_DIALECTS_LLM_LLMBASE_TD
#define LLMC_DIALECTS_LLM_LLMBASE_TD

include "LlmDialect.td"
include "LlmEnums.td"
include "LlmAttrs.td"
include "LlmTypes.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Llm_Op<string mnemonic, list<Trait> traits = []>
    : Op<Llm_Dialect, mnemonic, traits>;

// An op whose result depends on its operands only.
class Llm_PureOp<string mnemonic, list<Trait> traits = []>
    : Llm_Op<mnemonic, !listconcat([Pure], traits)>;

// An elementwise or row-wise op whose result has the type of its first operand's
// shape; the element types may differ (precision is assigned after import).
def Llm_FloatTensor : RankedTensorOf<[AnyFloat]>;
def Llm_Rows : RankedTensorOf<[AnyFloat]>;
def Llm_IdTensor : RankedTensorOf<[I32]>;
def Llm_WeightTensor : RankedTensorOf<[AnyFloat, AnyInteger]>;

#endif // LLMC_DIALECTS_LLM_LLMBASE_TD
