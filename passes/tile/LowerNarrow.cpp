// Conversions to and from 8-bit floats, two elements an instruction.
#include "passes/tile/Lowering.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace llmc::tile;

namespace {

/// Elements of a scalar or vector, one value each.
SmallVector<Value> elementsOf(OpBuilder &b, Location loc, Value value) {
  auto vector = dyn_cast<VectorType>(value.getType());
  if (!vector)
    return {value};
  SmallVector<Value> elements;
  for (int64_t i = 0; i < vector.getNumElements(); ++i)
    elements.push_back(vector::ExtractOp::create(b, loc, value, i));
  return elements;
}

/// The scalar or vector of type `type` that has these elements.
Value assemble(OpBuilder &b, Location loc, Type type,
               ArrayRef<Value> elements) {
  if (!isa<VectorType>(type))
    return elements.front();
  return vector::FromElementsOp::create(b, loc, type, elements);
}

struct NarrowPattern : TilePattern<NarrowOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(NarrowOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type type = op.getResult().getType();
    SmallVector<Value> from = elementsOf(rewriter, loc, adaptor.getValue()), to;
    auto bytes = VectorType::get({2}, rewriter.getI8Type());
    for (size_t i = 0; i < from.size(); i += 2) {
      // The first operand goes into the upper byte.
      Value low = from[i], high = from[std::min(i + 1, from.size() - 1)];
      Value pair = NVVM::ConvertF32x2ToF8x2Op::create(
          rewriter, loc, bytes, high, low, NVVM::FPRoundingMode::RN,
          NVVM::SaturationMode::SATFINITE, /*relu=*/false,
          getElementTypeOrSelf(type));
      to.push_back(vector::ExtractOp::create(rewriter, loc, pair, 0));
      to.push_back(vector::ExtractOp::create(rewriter, loc, pair, 1));
    }
    rewriter.replaceOp(
        op, assemble(rewriter, loc, getTypeConverter()->convertType(type), to));
    return success();
  }
};

struct WidenPattern : TilePattern<WidenOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(WidenOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type source = getElementTypeOrSelf(op.getValue().getType());
    SmallVector<Value> from = elementsOf(rewriter, loc, adaptor.getValue()), to;
    auto bytes = VectorType::get({2}, rewriter.getI8Type());
    // Both formats are subsets of float16, which is what the chip converts to.
    auto halves = VectorType::get({2}, rewriter.getF16Type());
    for (size_t i = 0; i < from.size(); i += 2) {
      Value pair = vector::FromElementsOp::create(
          rewriter, loc, bytes,
          ValueRange{from[i], from[std::min(i + 1, from.size() - 1)]});
      Value wide = NVVM::ConvertF8x2ToF16x2Op::create(rewriter, loc, halves,
                                                      pair, false, source);
      for (Value half : elementsOf(rewriter, loc, wide))
        to.push_back(
            arith::ExtFOp::create(rewriter, loc, rewriter.getF32Type(), half));
    }
    rewriter.replaceOp(op,
                       assemble(rewriter, loc, op.getResult().getType(), to));
    return success();
  }
};

} // namespace

void llmc::tile::populateNarrowPatterns(const TypeConverter &converter,
                                        RewritePatternSet &patterns,
                                        const KernelLowering &kernel) {
  patterns.add<NarrowPattern, WidenPattern>(converter, patterns.getContext(),
                                            kernel);
}
