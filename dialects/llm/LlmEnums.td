//===- LlmEnums.td - enumerations of the llm dialect -------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_DIALECTS_LLM_LLMENUMS_TD
#define LLMC_DIALECTS_LLM_LLMENUMS_TD

include "LlmDialect.td"
include "mlir/IR/EnumAttr.td"

class Llm_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::llmc::llm";
  let genSpecializedAttr = 0;
}

def Llm_ActivationKind : Llm_Enum<"ActivationKind", "activation function", [
  I32EnumAttrCase<"Identity", 0, "identity">,
  I32EnumAttrCase<"Relu", 1, "relu">,
  I32EnumAttrCase<"Relu2", 2, "relu2">,          // relu(x)^2
  I32EnumAttrCase<"Silu", 3, "silu">,
  I32EnumAttrCase<"Gelu", 4, "gelu">,            // x * Phi(x), by erf
  I32EnumAttrCase<"GeluTanh", 5, "gelu_tanh">,   // tanh approximation
  I32EnumAttrCase<"GeluQuick", 6, "gelu_quick">, // x * sigmoid(1.702 x)
  I32EnumAttrCase<"Sigmoid", 7, "sigmoid">,
  I32EnumAttrCase<"Tanh", 8, "tanh">]>;

def Llm_ReduceKind : Llm_Enum<"ReduceKind", "reduction", [
  I32EnumAttrCase<"Sum", 0, "sum">,
  I32EnumAttrCase<"Mean", 1, "mean">,
  I32EnumAttrCase<"Max", 2, "max">]>;

// `half` pairs element i with i + rotary_dim/2 (GPT-NeoX, Llama);
// `interleaved` pairs element 2i with 2i + 1 (GPT-J).
def Llm_RopeStyle : Llm_Enum<"RopeStyle", "pairing of rotated elements", [
  I32EnumAttrCase<"Half", 0, "half">,
  I32EnumAttrCase<"Interleaved", 1, "interleaved">]>;

// `split` is [gate | up] along the last dimension; `interleaved` alternates
// gate and up columns, so that one GEMM tile holds both halves of a pair.
def Llm_GluLayout : Llm_Enum<"GluLayout", "order of packed gate and up", [
  I32EnumAttrCase<"Split", 0, "split">,
  I32EnumAttrCase<"Interleaved", 1, "interleaved">]>;

// The attribute of an enum; ops print it as a bare keyword.
class Llm_EnumAttr<EnumInfo info, string attrMnemonic>
    : EnumAttr<Llm_Dialect, info, attrMnemonic> {
  let assemblyFormat = "`<` $value `>`";
}
def Llm_ActivationKindAttr : Llm_EnumAttr<Llm_ActivationKind, "activation_kind">;
def Llm_ReduceKindAttr : Llm_EnumAttr<Llm_ReduceKind, "reduce_kind">;
def Llm_RopeStyleAttr : Llm_EnumAttr<Llm_RopeStyle, "rope_style">;
def Llm_GluLayoutAttr : Llm_EnumAttr<Llm_GluLayout, "glu_layout">;

#endif // LLMC_DIALECTS_LLM_LLMENUMS_TD
