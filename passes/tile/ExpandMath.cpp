// tile-expand-math: functions of `math` in instructions of the GPU.
#include "passes/tile/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <numbers>

namespace llmc {
#define GEN_PASS_DEF_TILEEXPANDMATH
#include "passes/tile/Passes.h.inc"
} // namespace llmc

using namespace mlir;

namespace {

/// f32 arithmetic on scalars or vectors, at one location.
struct Math {
  OpBuilder &b;
  Location loc;

  Value constant(Type type, double value) {
    auto scalar = FloatAttr::get(getElementTypeOrSelf(type), value);
    TypedAttr attr = scalar;
    if (auto vector = dyn_cast<VectorType>(type))
      attr = DenseElementsAttr::get(vector, Attribute(scalar));
    return arith::ConstantOp::create(b, loc, attr);
  }
  Value mul(Value x, double y) {
    return arith::MulFOp::create(b, loc, x, constant(x.getType(), y));
  }
  Value add(Value x, double y) {
    return arith::AddFOp::create(b, loc, x, constant(x.getType(), y));
  }
  Value divide(double x, Value y) {
    // div.approx, 2 ulp.
    return arith::DivFOp::create(b, loc, constant(y.getType(), x), y,
                                 arith::FastMathFlags::afn);
  }
  /// One intrinsic per element.
  Value intrinsic(StringRef name, Value x) {
    auto vector = dyn_cast<VectorType>(x.getType());
    auto call = [&](Value element) {
      return LLVM::CallIntrinsicOp::create(b, loc, element.getType(),
                                           b.getStringAttr(name), element)
          .getResult(0);
    };
    if (!vector)
      return call(x);
    Value result = constant(vector, 0.0);
    for (int64_t i = 0; i < vector.getNumElements(); ++i)
      result = vector::InsertOp::create(
          b, loc, call(vector::ExtractOp::create(b, loc, x, i)), result, i);
    return result;
  }
  Value exp2(Value x) { return intrinsic("llvm.nvvm.ex2.approx.ftz.f32", x); }
  Value log2(Value x) { return intrinsic("llvm.nvvm.lg2.approx.f", x); }
};

template <typename Op> struct Expand : OpRewritePattern<Op> {
  using Function = Value (*)(Math &, Op);
  Expand(MLIRContext *context, Function function)
      : OpRewritePattern<Op>(context), function(function) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    Math math{rewriter, op.getLoc()};
    rewriter.replaceOp(op, function(math, op));
    return success();
  }
  Function function;
};

/// sin or cos of any angle: reduced to [-pi, pi] in f64, because positions
/// times frequencies reach 1e5, where f32 has no digits left for the phase.
Value reduced(Math &m, Value x, StringRef name) {
  Type wide = m.b.getF64Type();
  if (auto vector = dyn_cast<VectorType>(x.getType()))
    wide = VectorType::get(vector.getShape(), wide);
  Value angle = arith::ExtFOp::create(m.b, m.loc, wide, x);
  Value turns = math::RoundEvenOp::create(
      m.b, m.loc, m.mul(angle, 0.5 * std::numbers::inv_pi));
  Value rest = arith::SubFOp::create(m.b, m.loc, angle,
                                     m.mul(turns, 2 * std::numbers::pi));
  return m.intrinsic(name,
                     arith::TruncFOp::create(m.b, m.loc, x.getType(), rest));
}

struct ExpandMath : llmc::impl::TileExpandMathBase<ExpandMath> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    auto add = [&]<typename Op>(Value (*function)(Math &, Op)) {
      patterns.add<Expand<Op>>(context, function);
    };
    add(+[](Math &m, math::Exp2Op op) { return m.exp2(op.getOperand()); });
    add(+[](Math &m, math::ExpOp op) {
      return m.exp2(m.mul(op.getOperand(), std::numbers::log2e));
    });
    add(+[](Math &m, math::Log2Op op) { return m.log2(op.getOperand()); });
    add(+[](Math &m, math::LogOp op) {
      return m.mul(m.log2(op.getOperand()), std::numbers::ln2);
    });
    add(+[](Math &m, math::PowFOp op) -> Value {
      Value power =
          arith::MulFOp::create(m.b, m.loc, op.getRhs(), m.log2(op.getLhs()));
      return m.exp2(power);
    });
    add(+[](Math &m, math::TanhOp op) {
      // 1 - 2 / (1 + e^2x): right at both ends.
      Value e = m.exp2(m.mul(op.getOperand(), 2 * std::numbers::log2e));
      return m.add(m.divide(-2.0, m.add(e, 1.0)), 1.0);
    });
    add(+[](Math &m, math::RsqrtOp op) {
      return m.intrinsic("llvm.nvvm.rsqrt.approx.f", op.getOperand());
    });
    add(+[](Math &m, math::SinOp op) {
      return reduced(m, op.getOperand(), "llvm.nvvm.sin.approx.f");
    });
    add(+[](Math &m, math::CosOp op) {
      return reduced(m, op.getOperand(), "llvm.nvvm.cos.approx.f");
    });
    populatePolynomialApproximateErfPattern(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    // What is left would become a call to a library that the GPU lacks.
    WalkResult left = getOperation()->walk([](Operation *op) {
      if (!isa<math::Exp2Op, math::ExpOp, math::Log2Op, math::LogOp,
               math::PowFOp, math::TanhOp, math::RsqrtOp, math::SinOp,
               math::CosOp, math::ErfOp>(op))
        return WalkResult::advance();
      op->emitOpError("expected f32 (or a vector of it), got ")
          << op->getResult(0).getType()
          << "; convert with arith.extf or arith.truncf";
      return WalkResult::interrupt();
    });
    if (left.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
