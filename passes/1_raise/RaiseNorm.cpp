//===- RaiseNorm.cpp - norms written out in arithmetic --------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A norm is raised by algebra, a step at a time: x * rsqrt(mean(x^2) + eps) is
// an RMS norm; a vector multiplied on is its gamma; an RMS norm of x - mean(x)
// is a layer norm; a vector added to that is its beta. Every spelling of a
// family is some order of these steps.
//
//===----------------------------------------------------------------------===//

#include "passes/1_raise/Match.h"
#include "passes/1_raise/Passes.h"
#include "passes/Parameters.h"

namespace llmc {
#define GEN_PASS_DEF_LLMRAISENORM
#include "passes/1_raise/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

// Whether `value` is the mean of `input` over its last dimension.
bool isMean(Value value, Value input) {
  int64_t rank = cast<RankedTensorType>(input.getType()).getRank();
  int64_t size = cast<RankedTensorType>(input.getType()).getShape().back();
  auto reducesLast = [&](Value reduced, llm::ReduceKind kind) {
    auto reduce = definedBy<llm::ReduceOp>(reduced);
    return reduce && reduce.getKind() == kind && reduce.getInput() == input &&
           reduce.getDims() == ArrayRef<int64_t>{rank - 1};
  };
  if (reducesLast(value, llm::ReduceKind::Mean))
    return true;
  if (ShapedType::isDynamic(size))
    return false;
  if (auto div = definedBy<arith::DivFOp>(value))
    return isSplat(div.getRhs(), double(size)) &&
           reducesLast(div.getLhs(), llm::ReduceKind::Sum);
  return matchEitherOrder(definedBy<arith::MulFOp>(value),
                          [&](Value sum, Value factor) {
                            return isSplat(factor, 1.0 / double(size)) &&
                                   reducesLast(sum, llm::ReduceKind::Sum);
                          });
}

// eps, if `value` is mean(x^2) + eps.
std::optional<double> matchMeanSquare(Value value, Value x) {
  auto isMeanSquare = [&](Value mean) {
    for (Operation *user : x.getUsers())
      if (user->getNumResults() == 1 && squared(user->getResult(0)) == x &&
          isMean(mean, user->getResult(0)))
        return true;
    return false;
  };
  std::optional<double> eps;
  if (matchEitherOrder(definedBy<arith::AddFOp>(value),
                       [&](Value mean, Value constant) {
                         eps = splatValue(constant);
                         return eps && isMeanSquare(mean);
                       }))
    return eps;
  return std::nullopt;
}

// eps, if `value` is 1 / sqrt(mean(x^2) + eps).
std::optional<double> matchInverseRms(Value value, Value x) {
  if (auto rsqrt = definedBy<math::RsqrtOp>(value))
    return matchMeanSquare(rsqrt.getOperand(), x);
  if (auto div = definedBy<arith::DivFOp>(value);
      div && isSplat(div.getLhs(), 1.0))
    if (auto sqrt = definedBy<math::SqrtOp>(div.getRhs()))
      return matchMeanSquare(sqrt.getOperand(), x);
  return std::nullopt;
}

// x * 1/rms(x) => rms_norm x
struct MultipliedRms : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::MulFOp op,
                                PatternRewriter &rewriter) const override {
    return success(matchEitherOrder(op, [&](Value x, Value factor) {
      if (!isa<RankedTensorType>(x.getType()))
        return false;
      std::optional<double> eps = matchInverseRms(factor, x);
      if (!eps)
        return false;
      rewriter.replaceOpWithNewOp<llm::RmsNormOp>(
          op, op.getType(), x, Value(), rewriter.getF64FloatAttr(*eps));
      return true;
    }));
  }
};

// x / rms(x) => rms_norm x
struct DividedRms : OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &rewriter) const override {
    auto sqrt = isa<RankedTensorType>(op.getType())
                    ? definedBy<math::SqrtOp>(op.getRhs())
                    : nullptr;
    if (!sqrt)
      return failure();
    std::optional<double> eps = matchMeanSquare(sqrt.getOperand(), op.getLhs());
    if (!eps)
      return failure();
    rewriter.replaceOpWithNewOp<llm::RmsNormOp>(
        op, op.getType(), op.getLhs(), Value(), rewriter.getF64FloatAttr(*eps));
    return success();
  }
};

// rms_norm(x - mean(x)) => layer_norm x
struct CentredRms : OpRewritePattern<llm::RmsNormOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(llm::RmsNormOp op,
                                PatternRewriter &rewriter) const override {
    auto sub = op.getInput().getDefiningOp<arith::SubFOp>();
    if (!sub || !isMean(sub.getRhs(), sub.getLhs()))
      return failure();
    rewriter.replaceOpWithNewOp<llm::LayerNormOp>(op, op.getType(),
                                                  sub.getLhs(), op.getGamma(),
                                                  Value(), op.getEpsAttr());
    return success();
  }
};

// norm(x) * vector => norm(x) with gamma
template <typename NormOp> struct Gamma : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern<arith::MulFOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::MulFOp op,
                                PatternRewriter &rewriter) const override {
    return success(matchEitherOrder(op, [&](Value scaled, Value factor) {
      auto norm = scaled.getDefiningOp<NormOp>();
      if (!norm || norm.getGamma() || norm.getType() != op.getType() ||
          !norm->hasOneUse())
        return false;
      if constexpr (std::is_same_v<NormOp, llm::LayerNormOp>)
        if (norm.getBeta())
          return false;
      Value gamma = lastDimVector(factor);
      if (!gamma)
        return false;
      auto raised = cast<NormOp>(rewriter.clone(*norm));
      raised.getGammaMutable().assign(gamma);
      rewriter.replaceOp(op, raised);
      return true;
    }));
  }
};

// layer_norm(x) + vector => layer_norm(x) with beta
struct Beta : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &rewriter) const override {
    return success(matchEitherOrder(op, [&](Value sum, Value addend) {
      auto norm = sum.getDefiningOp<llm::LayerNormOp>();
      if (!norm || norm.getBeta() || !norm->hasOneUse())
        return false;
      Value beta = lastDimVector(addend);
      if (!beta)
        return false;
      rewriter.replaceOpWithNewOp<llm::LayerNormOp>(
          op, op.getType(), norm.getInput(), norm.getGamma(), beta,
          norm.getEpsAttr());
      return true;
    }));
  }
};

// weight + constant => a parameter of its own. Gemma scales its norms by 1 + w.
struct OffsetWeight : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &rewriter) const override {
    return success(matchEitherOrder(op, [&](Value operand, Value constant) {
      auto weight = operand.getDefiningOp<llm::WeightOp>();
      std::optional<double> offset = splatValue(constant);
      if (!weight || !offset)
        return false;
      auto parameter = SymbolTable::lookupNearestSymbolFrom<llm::ParameterOp>(
          op, weight.getNameAttr());
      if (!parameter || !parameter.getRecipeAttr())
        return false;
      rewriter.replaceOpWithNewOp<llm::WeightOp>(
          op, op.getType(),
          FlatSymbolRefAttr::get(declare(parameter, *offset, rewriter)));
      return true;
    }));
  }

  static StringAttr declare(llm::ParameterOp base, double offset,
                            PatternRewriter &rewriter) {
    auto recipe = llm::OffsetAttr::get(base.getContext(), base.getRecipeAttr(),
                                       rewriter.getF32FloatAttr(float(offset)));
    auto module = base->getParentOfType<ModuleOp>();
    std::string name = (base.getSymName() + ".offset").str();
    for (unsigned copy = 1;; ++copy) {
      auto existing = dyn_cast_or_null<llm::ParameterOp>(
          SymbolTable::lookupSymbolIn(module, name));
      if (!existing)
        break;
      if (existing.getRecipeAttr() == recipe)
        return existing.getSymNameAttr();
      name = (base.getSymName() + ".offset." + Twine(copy)).str();
    }
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointAfter(base);
    auto parameter = cast<llm::ParameterOp>(rewriter.clone(*base));
    parameter.setSymName(name);
    parameter.setRecipeAttr(recipe);
    return parameter.getSymNameAttr();
  }
};

struct RaiseNormPass : llmc::impl::LlmRaiseNormBase<RaiseNormPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<MultipliedRms, DividedRms, CentredRms, Gamma<llm::RmsNormOp>,
                 Gamma<llm::LayerNormOp>, Beta, OffsetWeight>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    eraseUnusedParameters(getOperation());
  }
};

} // namespace
