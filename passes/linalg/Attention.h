// Dense softmax attention, the meaning of llm.attention and, a sequence at a
// time, of llm.paged_attention.
#pragma once

#include "passes/linalg/Emitter.h"

namespace llmc {

struct AttentionRule {
  double scale;
  bool causal;
  std::optional<int64_t> window;
  std::optional<double> softcap;
  mlir::Value sinks, alibiSlopes;

  template <typename Op>
  static AttentionRule of(Op op, mlir::Value sinks, mlir::Value slopes) {
    AttentionRule rule;
    rule.scale = op.getScale().convertToDouble();
    rule.causal = op.getCausal();
    rule.window = op.getWindow();
    if (auto softcap = op.getSoftcap())
      rule.softcap = softcap->convertToDouble();
    rule.sinks = sinks;
    rule.alibiSlopes = slopes;
    return rule;
  }
};

// query [n, Hq, D], key [m, Hkv, D], value [m, Hkv, Dv] to f32 [n, Hq, Dv]; row
// i of the query stands at position `offset + i`, row j of the keys at j.
mlir::Value emitAttention(Emitter &e, mlir::Value query, mlir::Value key,
                          mlir::Value value, mlir::Value offset,
                          const AttentionRule &rule);

} // namespace llmc
