//===- RaiseGlu.cpp - activations and gated linear units ------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/1_raise/Match.h"
#include "passes/1_raise/Passes.h"

#include <cmath>

namespace llmc {
#define GEN_PASS_DEF_LLMRAISEGLU
#include "passes/1_raise/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using llm::ActivationKind;

namespace {

bool isClose(double found, double expected) {
  return std::abs(found - expected) <= 1e-5 * std::abs(expected);
}

// Whether `value` is `factor` * x, in any spelling.
bool isMultiple(Value value, double factor, Value x) {
  Product product = flattenProduct(value);
  return product.factors.size() == 1 && product.factors[0] == x &&
         isClose(product.scale, factor);
}

// Whether `value` is 1 + f(..) for an op `FunctionOp`; returns its operand.
template <typename FunctionOp> Value matchOnePlus(Value value) {
  Value operand;
  matchEitherOrder(value.getDefiningOp<arith::AddFOp>(),
                   [&](Value function, Value one) {
                     auto op = function.getDefiningOp<FunctionOp>();
                     if (!op || !isSplat(one, 1.0))
                       return false;
                     operand = op.getOperand();
                     return true;
                   });
  return operand;
}

// x, if `value` is 1 + exp(-x).
Value matchSigmoidDenominator(Value value) {
  Value exponent = matchOnePlus<math::ExpOp>(value);
  if (!exponent)
    return {};
  if (auto neg = exponent.getDefiningOp<arith::NegFOp>())
    return neg.getOperand();
  Product product = flattenProduct(exponent);
  return product.factors.size() == 1 && product.scale == -1.0
             ? product.factors[0]
             : Value();
}

// Whether `value` is x + 0.044715 x^3.
bool isGeluCubic(Value value, Value x) {
  return matchEitherOrder(
      value.getDefiningOp<arith::AddFOp>(), [&](Value linear, Value cubic) {
        if (linear != x)
          return false;
        Product product = flattenProduct(cubic);
        if (!isClose(product.scale, 0.044715))
          return false;
        if (product.factors.size() == 1)
          if (auto pow = product.factors[0].getDefiningOp<math::PowFOp>())
            return pow.getLhs() == x && isSplat(pow.getRhs(), 3.0);
        return product.factors.size() == 3 &&
               llvm::all_equal(product.factors) && product.factors[0] == x;
      });
}

// The activation that x * `factor` * `scale` is.
std::optional<ActivationKind> matchSelfGate(Value x, Value factor,
                                            double scale) {
  if (auto gate = factor.getDefiningOp<llm::ActivationOp>();
      gate && gate.getKind() == ActivationKind::Sigmoid && scale == 1.0) {
    if (gate.getInput() == x)
      return ActivationKind::Silu;
    if (isMultiple(gate.getInput(), 1.702, x))
      return ActivationKind::GeluQuick;
    return std::nullopt;
  }
  if (!isClose(scale, 0.5))
    return std::nullopt;
  if (Value operand = matchOnePlus<math::ErfOp>(factor))
    return isMultiple(operand, std::sqrt(0.5), x)
               ? std::optional(ActivationKind::Gelu)
               : std::nullopt;
  if (Value operand = matchOnePlus<math::TanhOp>(factor)) {
    Product product = flattenProduct(operand);
    if (product.factors.size() == 1 &&
        isClose(product.scale, std::sqrt(2.0 / M_PI)) &&
        isGeluCubic(product.factors[0], x))
      return ActivationKind::GeluTanh;
  }
  return std::nullopt;
}

// 1 / (1 + exp(-x)) => sigmoid; x / (1 + exp(-x)) => silu
struct DividedSigmoid : OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &rewriter) const override {
    Value x = matchSigmoidDenominator(op.getRhs());
    if (!x || !(isSplat(op.getLhs(), 1.0) || op.getLhs() == x))
      return failure();
    ActivationKind kind =
        op.getLhs() == x ? ActivationKind::Silu : ActivationKind::Sigmoid;
    rewriter.replaceOpWithNewOp<llm::ActivationOp>(op, op.getType(), kind, x);
    return success();
  }
};

// x * gate(x), for every silu and GELU written out
struct SelfGate : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::MulFOp op,
                                PatternRewriter &rewriter) const override {
    Product product = flattenProduct(op);
    if (product.factors.size() != 2)
      return failure();
    for (auto [x, factor] : {std::pair(product.factors[0], product.factors[1]),
                             std::pair(product.factors[1], product.factors[0])})
      if (std::optional<ActivationKind> kind =
              matchSelfGate(x, factor, product.scale)) {
        rewriter.replaceOpWithNewOp<llm::ActivationOp>(op, op.getType(), *kind,
                                                       x);
        return success();
      }
    return failure();
  }
};

// max(x, 0) => relu
struct MaximumZero : OpRewritePattern<arith::MaximumFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::MaximumFOp op,
                                PatternRewriter &rewriter) const override {
    return success(matchEitherOrder(op, [&](Value x, Value zero) {
      if (splatValue(zero) != 0.0)
        return false;
      rewriter.replaceOpWithNewOp<llm::ActivationOp>(op, op.getType(),
                                                     ActivationKind::Relu, x);
      return true;
    }));
  }
};

// relu(x)^2 => relu2
template <typename SquareOp> struct SquaredRelu : OpRewritePattern<SquareOp> {
  using OpRewritePattern<SquareOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(SquareOp op,
                                PatternRewriter &rewriter) const override {
    Value base = squared(op);
    auto relu = base ? base.getDefiningOp<llm::ActivationOp>() : nullptr;
    if (!relu || relu.getKind() != ActivationKind::Relu)
      return failure();
    rewriter.replaceOpWithNewOp<llm::ActivationOp>(
        op, op.getType(), ActivationKind::Relu2, relu.getInput());
    return success();
  }
};

// activation(gate) * up => glu. A factor that is only repeated (a scale, a
// vector) is no `up`: it would cost a whole tensor.
struct Gated : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::MulFOp op,
                                PatternRewriter &rewriter) const override {
    return success(matchEitherOrder(op, [&](Value activated, Value up) {
      auto activation = activated.getDefiningOp<llm::ActivationOp>();
      if (!activation || !activation->hasOneUse() ||
          activation.getType() != op.getType() ||
          up.getDefiningOp<llm::BroadcastOp>() || splatValue(up))
        return false;
      rewriter.replaceOpWithNewOp<llm::GluOp>(
          op, op.getType(), activation.getKind(), activation.getInput(), up);
      return true;
    }));
  }
};

struct RaiseGluPass : llmc::impl::LlmRaiseGluBase<RaiseGluPass> {
  void runOnOperation() override {
    // Activations first: x * sigmoid(x) is a silu, not a gate of x by itself.
    RewritePatternSet activations(&getContext());
    activations.add<DividedSigmoid, SelfGate, MaximumZero,
                    SquaredRelu<arith::MulFOp>, SquaredRelu<math::PowFOp>>(
        &getContext());
    RewritePatternSet gates(&getContext());
    gates.add<Gated>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(activations))) ||
        failed(applyPatternsGreedily(getOperation(), std::move(gates))))
      signalPassFailure();
  }
};

} // namespace
