#include "passes/host/Entry.h"
#include "passes/host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace llmc {
#define GEN_PASS_DEF_HOSTEXPANDMATH
#include "passes/host/Passes.h.inc"
} // namespace llmc

using namespace mlir;

// Products may be fused and, unless the function forbids it, sums reordered:
// what a vector loop needs.
static void relax(Operation *op) {
  auto interface = dyn_cast<arith::ArithFastMathInterface>(op);
  if (!interface ||
      !isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType())))
    return;
  auto flags = arith::FastMathFlags::contract | arith::FastMathFlags::nsz;
  auto function = op->getParentOfType<func::FuncOp>();
  if (!function || !function->hasAttr(llmc::entry_attr::kOrderedSums))
    flags = flags | arith::FastMathFlags::reassoc;
  op->setAttr(interface.getFastMathAttrName(),
              arith::FastMathFlagsAttr::get(op->getContext(), flags));
}

namespace {
struct HostExpandMath : llmc::impl::HostExpandMathBase<HostExpandMath> {
  using Base::Base;

  void runOnOperation() override {
    // Before the expansion: its range reductions must not be reordered.
    getOperation()->walk(relax);
    RewritePatternSet patterns(&getContext());
    // Angles of rotary tables are large: sine and cosine stay calls of libm.
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return llvm::is_contained({"exp", "tanh", "erf", "log"},
                                name.split('.').second);
    });
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
