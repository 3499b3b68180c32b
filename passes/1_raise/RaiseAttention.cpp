//===- RaiseAttention.cpp - what surrounds an attention -------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/1_raise/Elements.h"
#include "passes/1_raise/Match.h"
#include "passes/1_raise/Passes.h"
#include "passes/1_raise/Views.h"

namespace llmc {
#define GEN_PASS_DEF_LLMRAISEATTENTION
#include "passes/1_raise/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

// A tensor that, with every head read by `group` heads of `value`, is `value`.
struct Repeated {
  Value source;
  int64_t group;
};

// Whether heads of a [T, H, D] tensor are copies: head h of it is head h /
// group of `source`, for every h.
std::optional<Repeated> matchRepeatedHeads(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t heads = type.getDimSize(1);
  if (ShapedType::isDynamic(heads) || heads < 2)
    return std::nullopt;
  std::optional<Repeated> repeated;
  for (int64_t head = 0; head < heads; ++head) {
    Element root = wholeTensor(value);
    root.at[1] = Coordinate::number(head);
    Element element = traceViews(root);
    // The source has the shape of the value but for the number of heads.
    Element expected = root;
    expected.tensor = element.tensor;
    auto source = cast<RankedTensorType>(element.tensor.getType());
    if (!repeated) {
      if (source.getRank() != 3 || source.getDimSize(1) >= heads ||
          heads % source.getDimSize(1) ||
          source.getDimSize(2) != type.getDimSize(2))
        return std::nullopt;
      repeated = Repeated{element.tensor, heads / source.getDimSize(1)};
    }
    expected.at[1] = Coordinate::number(head / repeated->group);
    if (element.tensor != repeated->source || !(element == expected))
      return std::nullopt;
  }
  return repeated;
}

// Attention over repeated keys and values => grouped heads
struct GroupHeads : OpRewritePattern<llm::AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(llm::AttentionOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<Repeated> key = matchRepeatedHeads(op.getKey());
    std::optional<Repeated> value = matchRepeatedHeads(op.getValue());
    if (!key || !value || key->group != value->group)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getKeyMutable().assign(key->source);
      op.getValueMutable().assign(value->source);
    });
    return success();
  }
};

// Attention of scaled queries or keys => scaled attention. Views and rotations
// commute with a scale, so it may also stand in front of them.
struct FoldScale : OpRewritePattern<llm::AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(llm::AttentionOp op,
                                PatternRewriter &rewriter) const override {
    for (OpOperand *operand : {&op.getQueryMutable(), &op.getKeyMutable()}) {
      OpOperand *scaled = skipLinearOps(operand);
      Operation *scaling = scaled->get().getDefiningOp();
      if (!isa_and_nonnull<arith::MulFOp, arith::DivFOp>(scaling))
        continue;
      Product product = flattenProduct(scaling->getResult(0));
      if (product.factors.size() != 1 || product.scale <= 0 ||
          product.factors[0].getType() != scaled->get().getType())
        continue;
      double scale = op.getScale().convertToDouble() * product.scale;
      rewriter.modifyOpInPlace(scaled->getOwner(),
                               [&] { scaled->set(product.factors[0]); });
      rewriter.modifyOpInPlace(
          op, [&] { op.setScaleAttr(rewriter.getF64FloatAttr(scale)); });
      return success();
    }
    return failure();
  }

  // Up through ropes and views that only this attention reads.
  static OpOperand *skipLinearOps(OpOperand *operand) {
    while (Operation *op = operand->get().getDefiningOp()) {
      bool isLinear =
          isa<llm::RopeOp>(op) || (isView(op) && !isa<tensor::ConcatOp>(op));
      if (!isLinear || !op->hasOneUse())
        break;
      operand = &op->getOpOperand(0);
    }
    return operand;
  }
};

// slice(transpose(x)) => transpose(slice(x)): one of a model's transposes
// around a merged projection moves up to the other and cancels.
struct SlicedTranspose : OpRewritePattern<tensor::ExtractSliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::ExtractSliceOp op,
                                PatternRewriter &rewriter) const override {
    auto transpose = op.getSource().getDefiningOp<llm::TransposeOp>();
    if (!transpose || op.getType().getRank() != op.getSourceType().getRank())
      return failure();
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    SmallVector<OpFoldResult> offsets(permutation.size()),
        sizes(permutation.size()), strides(permutation.size());
    SmallVector<int64_t> shape(permutation.size());
    for (auto [dim, from] : llvm::enumerate(permutation)) {
      offsets[from] = op.getMixedOffsets()[dim];
      sizes[from] = op.getMixedSizes()[dim];
      strides[from] = op.getMixedStrides()[dim];
      shape[from] = op.getType().getDimSize(dim);
    }
    Value sliced = tensor::ExtractSliceOp::create(
        rewriter, op.getLoc(),
        RankedTensorType::get(shape, op.getType().getElementType()),
        transpose.getInput(), offsets, sizes, strides);
    rewriter.replaceOpWithNewOp<llm::TransposeOp>(op, op.getType(), sliced,
                                                  permutation);
    return success();
  }
};

// norm(transpose(x)) => transpose(norm(x)), when the last dimension stays last.
// Norms of queries and keys then work on [T, heads, D], whatever order the
// model used.
template <typename NormOp> struct TransposedInput : OpRewritePattern<NormOp> {
  using OpRewritePattern<NormOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(NormOp op,
                                PatternRewriter &rewriter) const override {
    auto transpose = op.getInput().template getDefiningOp<llm::TransposeOp>();
    if (!transpose || transpose.getPermutation().back() !=
                          int64_t(transpose.getPermutation().size()) - 1)
      return failure();
    auto type = RankedTensorType::get(
        cast<RankedTensorType>(transpose.getInput().getType()).getShape(),
        op.getType().getElementType());
    auto norm = cast<NormOp>(rewriter.clone(*op));
    norm.getInputMutable().assign(transpose.getInput());
    norm.getResult().setType(type);
    rewriter.replaceOpWithNewOp<llm::TransposeOp>(op, op.getType(), norm,
                                                  transpose.getPermutation());
    return success();
  }
};

struct RaiseAttentionPass
    : llmc::impl::LlmRaiseAttentionBase<RaiseAttentionPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<GroupHeads, FoldScale, SlicedTranspose,
                 TransposedInput<llm::RmsNormOp>,
                 TransposedInput<llm::LayerNormOp>>(&getContext());
    tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns,
                                                         &getContext());
    tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
