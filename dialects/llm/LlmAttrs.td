//===- LlmAttrs.td - attributes of the llm dialect ---------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Weight recipes: how a parameter is made from tensors of the checkpoint. They
// nest, so that merging, slicing for tensor parallelism and transposing compose.
// The engine writer evaluates them while it streams; no pass ever sees a weight.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_DIALECTS_LLM_LLMATTRS_TD
#define LLMC_DIALECTS_LLM_LLMATTRS_TD

include "LlmDialect.td"
include "LlmEnums.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"

class Llm_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Llm_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Llm_SourceAttr : Llm_Attr<"Source", "source"> {
  let summary = "a tensor of the checkpoint, by name";
  let description = [{
    The leaf of a recipe: the checkpoint tensor of that name, converted to the
    parameter's element type.

    Example: `#llm.source<"model.layers.0.mlp.up_proj.weight">`
  }];
  let parameters = (ins StringRefParameter<"checkpoint tensor">:$name);
  let assemblyFormat = "`<` $name `>`";
}

def Llm_TransposeAttr : Llm_Attr<"Transpose", "transpose"> {
  let summary = "a recipe with its two dimensions exchanged";
  let description = [{
    GPT-2 stores linear weights as [in, out]; a parameter is always [out, in].

    Example: `#llm.transpose<#llm.source<"h.0.mlp.c_fc.weight">>`
  }];
  let parameters = (ins "::mlir::Attribute":$recipe);
  let assemblyFormat = "`<` $recipe `>`";
  let genVerifyDecl = 1;
}

def Llm_ConcatAttr : Llm_Attr<"Concat", "concat"> {
  let summary = "recipes joined along one dimension";
  let description = [{
    Joins its parts in order along `dim`. Merged projections are concatenations.

    Example: `#llm.concat<[#llm.source<"q">, #llm.source<"k">, #llm.source<"v">], dim = 0>`
  }];
  let parameters = (ins
    ArrayRefParameter<"::mlir::Attribute">:$parts, "int64_t":$dim);
  let assemblyFormat = "`<` `[` $parts `]` `,` `dim` `=` $dim `>`";
  let genVerifyDecl = 1;
}

def Llm_InterleaveAttr : Llm_Attr<"Interleave", "interleave"> {
  let summary = "recipes of equal shape, interleaved in blocks along one dimension";
  let description = [{
    Takes `block` slices of `dim` from each part in turn: with block 1, rows
    g0 u0 g1 u1 ... Gate and up projections are interleaved so that one GEMM tile
    holds both factors of each output.

    Example: `#llm.interleave<[#llm.source<"gate">, #llm.source<"up">], dim = 0, block = 1>`
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::Attribute">:$parts,
                        "int64_t":$dim, "int64_t":$block);
  let assemblyFormat = [{
    `<` `[` $parts `]` `,` `dim` `=` $dim `,` `block` `=` $block `>`
  }];
  let genVerifyDecl = 1;
}

def Llm_SliceAttr : Llm_Attr<"Slice", "slice"> {
  let summary = "a range of one dimension of a recipe";
  let description = [{
    Elements `begin` to `end` (exclusive) along `dim`: a shard of a tensor, or one
    projection out of a checkpoint that stores them merged.

    Example: `#llm.slice<#llm.source<"qkv_proj.weight">, dim = 0, begin = 0, end = 4096>`
  }];
  let parameters = (ins "::mlir::Attribute":$recipe, "int64_t":$dim,
                        "int64_t":$begin, "int64_t":$end);
  let assemblyFormat = [{
    `<` $recipe `,` `dim` `=` $dim `,` `begin` `=` $begin `,` `end` `=` $end `>`
  }];
  let genVerifyDecl = 1;
}

def Llm_OffsetAttr : Llm_Attr<"Offset", "offset"> {
  let summary = "a recipe plus a constant";
  let description = [{
    Adds `value` to every element in float32 before conversion. Gemma's norms
    scale by 1 + w: the 1 is folded into the stored weight.

    Example: `#llm.offset<#llm.source<"norm.weight">, 1.0 : f32>`
  }];
  let parameters = (ins "::mlir::Attribute":$recipe, "::mlir::FloatAttr":$value);
  let assemblyFormat = "`<` $recipe `,` $value `>`";
  let genVerifyDecl = 1;
}

def Llm_QuantizationAttr : Llm_Attr<"Quantization", "quantization"> {
  let summary = "how a linear is to be quantized";
  let description = [{
    What `llm-assign-quantization` decides for an `llm.linear` (its attribute
    `llm.quantization`) and `llm-lower-quantization` carries out: the type of the
    weight's codes with one scale for `group` consecutive in features of an out
    feature (0: for all of them), and the type of the input's codes with one scale a
    token; without it the input stays as it is. With `zeros` codes have zero points,
    one beside each scale.

    Example: `#llm.quantization<weight = f8E4M3FN, group = 0, input = f8E4M3FN>`
  }];
  let parameters = (ins "::mlir::Type":$weight, "int64_t":$group,
                        OptionalParameter<"::mlir::Type">:$input,
                        DefaultValuedParameter<"bool", "false">:$zeros);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Llm_CodesAttr : Llm_Attr<"Codes", "codes"> {
  let summary = "a recipe of a matrix, quantized";
  let description = [{
    `convert(w / scale)`, saturating, with the scales that `#llm.scales` of the same
    arguments makes. Always the outermost part of a recipe. Of a checkpoint that is
    quantized in this way, the codes that it stores; only such a one can have `zeros`:
    zero points beside the scales, which `#llm.zeros` of the same arguments makes.

    Example: `#llm.codes<#llm.source<"up_proj.weight">, to = f8E4M3FN, group = 0>`
  }];
  let parameters = (ins "::mlir::Attribute":$recipe, "::mlir::Type":$to,
                        "int64_t":$group,
                        DefaultValuedParameter<"bool", "false">:$zeros);
  let assemblyFormat = [{
    `<` $recipe `,` `to` `=` $to `,` `group` `=` $group (`,` `zeros` `=` $zeros^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Llm_ScalesAttr : Llm_Attr<"Scales", "scales"> {
  let summary = "the scales of a quantized recipe of a matrix";
  let description = [{
    [N, K] gives [N, K / group] float32: `max(|w|) / limit` over `group` consecutive
    columns of a row (0: the whole row, [N, 1]), at least 2^-126; `limit` is the
    largest finite value of `to` whose negative it has too (448, 127 or 7). Of a
    checkpoint that is quantized in this way, the scales that it stores.

    Example: `#llm.scales<#llm.source<"up_proj.weight">, to = f8E4M3FN, group = 0>`
  }];
  let parameters = (ins "::mlir::Attribute":$recipe, "::mlir::Type":$to,
                        "int64_t":$group,
                        DefaultValuedParameter<"bool", "false">:$zeros);
  let assemblyFormat = [{
    `<` $recipe `,` `to` `=` $to `,` `group` `=` $group (`,` `zeros` `=` $zeros^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Llm_ZerosAttr : Llm_Attr<"Zeros", "zeros"> {
  let summary = "the zero points of a quantized recipe of a matrix";
  let description = [{
    [N, K] gives [N, K / group] i8, the zero points that the checkpoint stores, on the
    scale of its codes: `w = (code - zero) * scale`.

    Example: `#llm.zeros<#llm.source<"up_proj.weight">, to = i4, group = 128>`
  }];
  let parameters = (ins "::mlir::Attribute":$recipe, "::mlir::Type":$to,
                        "int64_t":$group);
  let assemblyFormat = [{
    `<` $recipe `,` `to` `=` $to `,` `group` `=` $group `>`
  }];
  let genVerifyDecl = 1;
}

def Llm_PanelLayoutAttr : Llm_Attr<"PanelLayout", "panels"> {
  let summary = "rows of a linear weight stored in panels";
  let description = [{
    The storage of an [N, K] weight for the host kernels: N is cut into panels of
    `rows` rows; inside a panel the data is K-major in groups of `group`
    consecutive k, so that one vector load gives `rows` outputs for one k group:
    element (n, k) lies at `((n / rows) * (K / group) + k / group) * rows * group +
    (n % rows) * group + k % group`. N is padded with zero rows to a multiple of
    `rows`, K with zeros to a multiple of `group`.

    Example: `#llm.panels<rows = 32, group = 1>`
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$group);
  let assemblyFormat = "`<` `rows` `=` $rows `,` `group` `=` $group `>`";
  let genVerifyDecl = 1;
}

#endif // LLMC_DIALECTS_LLM_LLMATTRS_TD
