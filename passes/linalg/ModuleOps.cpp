// Kernels become functions, launches calls; groups dissolve into their place.
#include "passes/linalg/Patterns.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {
struct LowerKernel : OpConversionPattern<KernelOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(KernelOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto function = func::FuncOp::create(rewriter, op.getLoc(), op.getSymName(),
                                         op.getFunctionType());
    function.setPrivate();
    rewriter.inlineRegionBefore(op.getBody(), function.getBody(),
                                function.end());
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerLaunch : OpConversionPattern<LaunchOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(LaunchOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> operands;
    for (ValueRange values : adaptor.getOperands())
      llvm::append_range(operands, values);
    rewriter.replaceOpWithNewOp<func::CallOp>(op, op.getKernel(),
                                              op.getResultTypes(), operands);
    return success();
  }
};

struct LowerGroup : OpConversionPattern<GroupOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(GroupOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto yield = cast<YieldOp>(op.getBody().front().getTerminator());
    SmallVector<Value> results(yield.getOperands());
    rewriter.eraseOp(yield);
    rewriter.inlineBlockBefore(&op.getBody().front(), op);
    rewriter.replaceOp(op, results);
    return success();
  }
};

// Only a kernel's terminator is left when this runs: groups drop theirs.
struct LowerYield : OpConversionPattern<YieldOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(YieldOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isa<func::FuncOp>(op->getParentOp()))
      return failure();
    rewriter.replaceOpWithNewOp<func::ReturnOp>(op, adaptor.getOperands());
    return success();
  }
};
} // namespace

void llmc::populateModuleLowerings(RewritePatternSet &patterns,
                                   const TypeConverter &converter) {
  patterns.add<LowerKernel, LowerLaunch, LowerGroup, LowerYield>(
      converter, patterns.getContext());
}
