// The lowerings of llm ops to linalg, by family.
#pragma once

#include "passes/linalg/Emitter.h"

#include "mlir/Transforms/DialectConversion.h"

namespace llmc {

// A lowering that is a function from converted operands to result values.
template <typename Op>
using LowerFn = llvm::SmallVector<mlir::Value> (*)(Op, typename Op::Adaptor,
                                                   Emitter &);

template <typename Op, LowerFn<Op> lower>
struct LowerPattern : mlir::OpConversionPattern<Op> {
  using mlir::OpConversionPattern<Op>::OpConversionPattern;
  mlir::LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  mlir::ConversionPatternRewriter &rewriter) const override {
    Emitter emitter(rewriter, op.getLoc());
    llvm::SmallVector<mlir::Value> results = lower(op, adaptor, emitter);
    // The lowering has said what is wrong.
    if (results.empty())
      return mlir::failure();
    rewriter.replaceOp(op, results);
    return mlir::success();
  }
};

template <typename Op, LowerFn<Op> lower>
void addLowering(mlir::RewritePatternSet &patterns) {
  patterns.add<LowerPattern<Op, lower>>(patterns.getContext());
}

// `!llm.batch`, `!llm.kv` and `!llm.kv_cache` as memrefs.
class HandleTypeConverter : public mlir::TypeConverter {
public:
  HandleTypeConverter();
};

// The memrefs of a converted `!llm.batch`.
struct BatchArrays {
  mlir::Value queryStart, kvLen, blockTable, slots;
  explicit BatchArrays(mlir::ValueRange values)
      : queryStart(values[0]), kvLen(values[1]), blockTable(values[2]),
        slots(values[3]) {}
};

void populateModuleLowerings(mlir::RewritePatternSet &,
                             const mlir::TypeConverter &);
void populatePrimitiveLowerings(mlir::RewritePatternSet &);
void populateDecoderLowerings(mlir::RewritePatternSet &);
void populateRopeLowerings(mlir::RewritePatternSet &);
void populateAttentionLowerings(mlir::RewritePatternSet &);
void populateCacheLowerings(mlir::RewritePatternSet &,
                            const mlir::TypeConverter &);
void populateExpertLowerings(mlir::RewritePatternSet &);
void populateQuantLowerings(mlir::RewritePatternSet &);
void populateCollectiveLowerings(mlir::RewritePatternSet &);

} // namespace llmc
