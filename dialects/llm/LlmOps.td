//===- LlmOps.td - operations of the llm dialect -----------*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_DIALECTS_LLM_LLMOPS_TD
#define LLMC_DIALECTS_LLM_LLMOPS_TD

include "LlmModuleOps.td"
include "LlmPrimitiveOps.td"
include "LlmDecoderOps.td"
include "LlmCacheOps.td"
include "LlmExpertOps.td"
include "LlmQuantOps.td"
include "LlmCollectiveOps.td"

#endif // LLMC_DIALECTS_LLM_LLMOPS_TD
