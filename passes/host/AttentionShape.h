// What an attention kernel computes, read from its body.
#pragma once

#include "dialects/llm/LlmDialect.h"

namespace llmc {

struct AttentionShape {
  // None when the body holds more than reshapes around one llm.paged_attention.
  static std::optional<AttentionShape> of(llm::KernelOp kernel);
  // Are all dimensions whole vectors?
  bool fits(int64_t lanes) const {
    return headDim % lanes == 0 && valueDim % lanes == 0 && block % lanes == 0;
  }

  llm::PagedAttentionOp op;
  mlir::Value query; // the kernel's argument
  unsigned kvOperand;
  int64_t kvHeads, group, headDim, valueDim, block;

  // Tokens of a tile: about 48 rows of queries, all heads of the group.
  int64_t tokensPerTile() const { return std::max<int64_t>(1, 48 / group); }
  int64_t rowsPerTile() const { return tokensPerTile() * group; }
};

} // namespace llmc
