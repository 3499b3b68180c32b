// Tensor-core multiplies: descriptors, wgmma batches, waits.
#include "passes/tile/Lowering.h"

using namespace mlir;
using namespace llmc::tile;

//===----------------------------------------------------------------------===//
// Matrix descriptors
//===----------------------------------------------------------------------===//

namespace {

/// How wgmma reads a swizzled tile: the constant bits of the descriptor and
/// where, in 16-byte units, each k-step starts.
struct Operand {
  Operand(SmemType tile, bool transposed)
      : tile(tile), transposed(transposed) {}

  int64_t highBits() const { return constantBits() >> 32 & 0xFFFFFFFF; }
  int64_t lowBits() const { return constantBits() & 0xFFFFFFFF; }

  int64_t constantBits() const {
    int64_t span = tile.getSwizzle();
    int64_t code = span == 128 ? 1 : span == 64 ? 2 : 3;
    int64_t stride = 8 * span, leading = 16;
    if (transposed)
      leading = tile.getSlabBytes();
    return int64_t(uint64_t(code) << 62) | (stride >> 4) << 32 |
           (leading >> 4) << 16;
  }

  int64_t stepOffset(int64_t step) const {
    int64_t span = tile.getSwizzle();
    if (transposed)
      return step * (32 / tile.getElementBytes()) * span >> 4;
    int64_t byte = step * 32;
    return (byte / span * tile.getSlabBytes() + byte % span) >> 4;
  }

  /// The low half; the high half is the same for all k-steps.
  Value low(Emitter &e, Value address) const {
    Value raw = LLVM::PtrToIntOp::create(e.b, e.loc, e.b.getI32Type(), address);
    return e.add(e.div(raw, 16), lowBits());
  }

  Value step(Emitter &e, Value low, int64_t step) const {
    Value half = e.add(low, stepOffset(step));
    Value wide = arith::ExtUIOp::create(e.b, e.loc, e.b.getI64Type(), half);
    return arith::OrIOp::create(e.b, e.loc, wide, e.i64(highBits() << 32));
  }

  SmemType tile;
  bool transposed;
};

NVVM::WGMMATypes wgmmaType(Type type) {
  if (type.isBF16())
    return NVVM::WGMMATypes::bf16;
  if (type.isF16())
    return NVVM::WGMMATypes::f16;
  if (isa<Float8E4M3FNType>(type))
    return NVVM::WGMMATypes::e4m3;
  return NVVM::WGMMATypes::e5m2;
}

StringRef ptxType(Type type) { return type.isBF16() ? "bf16" : "f16"; }

/// One k-step with A in registers. nvvm.wgmma takes A only as a descriptor, so
/// this is inline assembly with the accumulator tied in and out.
Value wgmmaFromRegisters(Emitter &e, Type storage, Value acc, ValueRange a,
                         Value b, int64_t n, Type element, bool transposed,
                         bool accumulate) {
  int64_t count = n / 2;
  std::string text, constraints;
  llvm::raw_string_ostream os(text), cs(constraints);
  os << "{\n.reg .pred p;\nsetp.ne.b32 p, " << (accumulate ? 1 : 0)
     << ", 0;\nwgmma.mma_async.sync.aligned.m64n" << n << "k16.f32."
     << ptxType(element) << "." << ptxType(element) << " {";
  for (int64_t i = 0; i < count; ++i) {
    os << (i ? ", $" : "$") << i;
    cs << (i ? ",=f" : "=f");
  }
  os << "}, {";
  for (int64_t i = 0; i < 4; ++i)
    os << (i ? ", $" : "$") << 2 * count + i;
  os << "}, $" << 2 * count + 4 << ", p, 1, 1, " << (transposed ? 1 : 0)
     << ";\n}";
  SmallVector<Value> operands;
  for (int64_t i = 0; i < count; ++i) {
    operands.push_back(e.extract(acc, i));
    cs << "," << i;
  }
  for (Value register32 : a) {
    operands.push_back(register32);
    cs << ",r";
  }
  operands.push_back(b);
  cs << ",l";
  return LLVM::InlineAsmOp::create(
             e.b, e.loc, storage, operands, text, constraints,
             /*has_side_effects=*/true, /*is_align_stack=*/false,
             LLVM::TailCallKind::None,
             LLVM::AsmDialectAttr::get(e.b.getContext(),
                                       LLVM::AsmDialect::AD_ATT),
             ArrayAttr())
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

struct ZeroAccPattern : TilePattern<ZeroAccOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(ZeroAccOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    for (Operation *user : op->getUsers())
      if (!isa<WgmmaOp>(user))
        return op.emitOpError("starts something else than a multiply; run "
                              "tile-peel-first-step");
    rewriter.replaceOpWithNewOp<LLVM::UndefOp>(
        op, getTypeConverter()->convertType(op.getAcc().getType()));
    return success();
  }
};

struct WgmmaPattern : TilePattern<WgmmaOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(WgmmaOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    SmemType bType = op.getB().getType();
    Type element = bType.getElementType();
    ArrayRef<int64_t> shape = op.getResult().getType().getShape();
    int64_t k = bType.getShape()[op.getTransposeB() ? 0 : 1];
    int64_t kStep = 32 / bType.getElementBytes();
    // The first multiply on an unwritten accumulator overwrites it.
    bool fresh = op.getAcc().getDefiningOp<ZeroAccOp>() != nullptr;
    Value acc = adaptor.getAcc();
    Type storage = acc.getType();
    Operand b(bType, op.getTransposeB());
    Value bBase = b.low(e, adaptor.getB());
    auto aType = dyn_cast<SmemType>(op.getA().getType());
    Value aBase =
        aType ? Operand(aType, false).low(e, adaptor.getA()) : Value();

    // Registers of an A fragment are ready before the fence.
    SmallVector<Value> aRegisters;
    if (!aType)
      for (int64_t i = 0; i < k / 4; ++i)
        aRegisters.push_back(LLVM::BitcastOp::create(
            rewriter, op.getLoc(), rewriter.getI32Type(),
            e.extract(adaptor.getA(), i)));

    NVVM::WgmmaFenceAlignedOp::create(rewriter, op.getLoc());
    for (int64_t step = 0; step < k / kStep; ++step) {
      bool accumulate = !fresh || step > 0;
      Value bStep = b.step(e, bBase, step);
      if (!aType) {
        acc = wgmmaFromRegisters(
            e, storage, acc, ArrayRef(aRegisters).slice(4 * step, 4), bStep,
            shape[1], element, op.getTransposeB(), accumulate);
        continue;
      }
      acc = NVVM::WgmmaMmaAsyncOp::create(
          rewriter, op.getLoc(), storage, acc,
          Operand(aType, false).step(e, aBase, step), bStep,
          NVVM::MMAShapeAttr::get(getContext(), 64, shape[1], kStep),
          wgmmaType(element), wgmmaType(element), NVVM::WGMMATypes::f32,
          accumulate ? NVVM::WGMMAScaleOut::one : NVVM::WGMMAScaleOut::zero,
          NVVM::WGMMAScaleIn::one, NVVM::WGMMAScaleIn::one,
          NVVM::MMALayout::row,
          op.getTransposeB() ? NVVM::MMALayout::row : NVVM::MMALayout::col,
          NVVM::MMAIntOverflowAttr());
    }
    NVVM::WgmmaGroupSyncAlignedOp::create(rewriter, op.getLoc());
    rewriter.replaceOp(op, acc);
    return success();
  }
};

struct WgmmaWaitPattern : TilePattern<WgmmaWaitOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(WgmmaWaitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    NVVM::WgmmaWaitGroupSyncOp::create(rewriter, op.getLoc(), op.getPending());
    rewriter.replaceOp(op, adaptor.getAccs());
    return success();
  }
};

} // namespace

void llmc::tile::populateMatrixPatterns(const TypeConverter &converter,
                                        RewritePatternSet &patterns,
                                        const KernelLowering &kernel) {
  patterns.add<ZeroAccPattern, WgmmaPattern, WgmmaWaitPattern>(
      converter, patterns.getContext(), kernel);
}
