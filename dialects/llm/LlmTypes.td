//===- LlmTypes.td - types of the llm dialect --------------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_DIALECTS_LLM_LLMTYPES_TD
#define LLMC_DIALECTS_LLM_LLMTYPES_TD

include "LlmDialect.td"
include "mlir/IR/AttrTypeBase.td"

class Llm_Type<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<Llm_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

def Llm_BatchType : Llm_Type<"Batch", "batch"> {
  let summary = "the ragged batch of a step";
  let description = [{
    A handle to the arrays that say which rows of the step belong to which
    sequence and where their keys and values live:

    | array | type | meaning |
    |---|---|---|
    | query_start | i32[S+1] | first row of each sequence; the last entry is T |
    | kv_len | i32[S] | cached tokens of each sequence after this step |
    | block_table | i32[S, B] | KV blocks of each sequence |
    | slots | i32[T] | block * block_size + offset of each row's key and value |
  }];
}

def Llm_KvType : Llm_Type<"Kv", "kv"> {
  let summary = "the paged KV cache of one layer";
  let description = [{
    Keys are stored as [num_blocks, heads, block, head_dim], values as
    [num_blocks, heads, block, v_head_dim]. `v_head_dim` 0 means that values are a
    prefix of the keys (latent attention).

    Example: `!llm.kv<heads = 8, head_dim = 128, v_head_dim = 128, block = 64, element = bf16>`
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$head_dim,
                        "int64_t":$v_head_dim, "int64_t":$block,
                        "::mlir::Type":$element);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Llm_KvCacheType : Llm_Type<"KvCache", "kv_cache"> {
  let summary = "the paged KV cache of all layers";
  let description = [{
    One `!llm.kv` a layer, printed run-length encoded.

    Example: `!llm.kv_cache<32 x !llm.kv<heads = 8, ...>>`
  }];
  let parameters = (ins ArrayRefParameter<"::llmc::llm::KvType">:$layers);
  let hasCustomAssemblyFormat = 1;
}

#endif // LLMC_DIALECTS_LLM_LLMTYPES_TD
