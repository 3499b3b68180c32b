//===- KernelKinds.cpp - which ops make a kernel --------------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/4_outline/KernelKinds.h"

#include "dialects/llm/LlmDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace llmc {

StringRef kernelAnchor(KernelKind kind) {
  switch (kind) {
  case KernelKind::Embedding:
    return "embedding";
  case KernelKind::Norm:
    return "norm";
  case KernelKind::Linear:
    return "linear";
  case KernelKind::RopeAppend:
    return "rope_append";
  case KernelKind::Attention:
    return "attention";
  case KernelKind::RopeTable:
    return "rope_table";
  case KernelKind::Elementwise:
    return "elementwise";
  case KernelKind::Sample:
    return "sample";
  }
  llvm_unreachable("unknown kernel kind");
}

static bool isNormOfRows(Operation *op) {
  return isa<llm::RmsNormOp, llm::LayerNormOp>(op) &&
         cast<RankedTensorType>(op->getResult(0).getType()).getRank() == 2;
}

std::optional<KernelKind> startedKind(Operation *op) {
  using Result = std::optional<KernelKind>;
  if (isNormOfRows(op))
    return KernelKind::Norm;
  return TypeSwitch<Operation *, Result>(op)
      .Case([](llm::EmbeddingOp) { return KernelKind::Embedding; })
      .Case<llm::LinearOp, llm::ScaledLinearOp>(
          [](auto) { return KernelKind::Linear; })
      .Case([](llm::KvAppendOp) { return KernelKind::RopeAppend; })
      .Case([](llm::PagedAttentionOp) { return KernelKind::Attention; })
      .Case([](llm::RopeTableOp) { return KernelKind::RopeTable; })
      .Case([](llm::SampleOp) { return KernelKind::Sample; })
      .Default([](Operation *) { return std::nullopt; });
}

bool isViewOp(Operation *op) {
  return isa<tensor::ExtractSliceOp, tensor::ExpandShapeOp,
             tensor::CollapseShapeOp, tensor::CastOp>(op);
}

bool isQuantizeOp(Operation *op) {
  return isa<llm::DynamicScaleOp, llm::QuantizeOp>(op);
}

bool isCastOp(Operation *op) { return isa<arith::ExtFOp, arith::TruncFOp>(op); }

bool isElementwiseOp(Operation *op) {
  return op->getNumResults() == 1 &&
         isa<RankedTensorType>(op->getResult(0).getType()) &&
         (op->hasTrait<OpTrait::Elementwise>() ||
          isa<llm::ActivationOp, llm::GluOp>(op));
}

std::optional<EpilogueStage> joinEpilogue(KernelKind kind, EpilogueStage stage,
                                          EpilogueOp op) {
  using Stage = EpilogueStage;
  // Sums, norms and products end the same way; a norm takes no scale, because
  // its gamma is one already.
  bool dense = kind == KernelKind::Linear || kind == KernelKind::Embedding ||
               kind == KernelKind::Norm;
  bool free = kind == KernelKind::Elementwise;
  switch (op) {
  case EpilogueOp::PackedGlu:
    if (free || (kind == KernelKind::Linear && stage == Stage::Start))
      return Stage::Chain;
    return std::nullopt;
  case EpilogueOp::Unary:
    if (free || (dense && kind != KernelKind::Norm && stage <= Stage::Chain))
      return Stage::Chain;
    return std::nullopt;
  case EpilogueOp::Residual:
    if (free || (dense && stage <= Stage::Residual))
      return Stage::Residual;
    return std::nullopt;
  case EpilogueOp::Cast:
  case EpilogueOp::View:
    if (free || dense || kind == KernelKind::Attention)
      return Stage::Cast;
    return std::nullopt;
  case EpilogueOp::Other:
    if (free)
      return Stage::Chain;
    return std::nullopt;
  }
  llvm_unreachable("unknown epilogue op");
}

} // namespace llmc
