// Shared tiles, loads, stores and atomics.
#include "passes/tile/Lowering.h"

using namespace mlir;
using namespace llmc::tile;

/// Address of an element. `indices` are i32 or i64 (global memory).
static Value elementAddress(Emitter &e, const TypeConverter &converter,
                            Type memory, Value base, ValueRange indices) {
  if (auto ptr = dyn_cast<PtrType>(memory))
    return LLVM::GEPOp::create(e.b, e.loc, base.getType(),
                               converter.convertType(ptr.getElementType()),
                               base, ArrayRef<LLVM::GEPArg>{indices.front()});
  auto tile = cast<SmemType>(memory);
  int64_t bytes = tile.getElementBytes();
  if (!tile.getSwizzle()) {
    Value linear = indices.front();
    for (auto [dim, index] :
         llvm::drop_begin(llvm::zip(tile.getShape(), indices)))
      linear = e.add(e.mul(linear, dim), index);
    return e.offset(base, e.mul(linear, bytes));
  }
  // Row r of a slab is at r * span; chunks of 16 bytes are exchanged by the
  // bits of the address that count 128-byte lines.
  int64_t span = tile.getSwizzle();
  Value row = indices[0], column = indices[1];
  Value slab = e.div(column, tile.getSlabColumns());
  Value inner = e.mul(e.rem(column, tile.getSlabColumns()), bytes);
  Value line = e.rem(e.div(row, 128 / span), span / 16);
  Value swizzled = e.bitXor(inner, e.shl(line, 4));
  Value offset = e.add(e.mul(slab, tile.getSlabBytes()),
                       e.add(e.mul(row, span), swizzled));
  return e.offset(base, offset);
}

static unsigned alignmentOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  Type element = vector ? vector.getElementType() : type;
  int64_t bytes = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8) *
                  (vector ? vector.getNumElements() : 1);
  return std::min<int64_t>(16, bytes & -bytes);
}

namespace {

struct LoadPattern : TilePattern<LoadOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(LoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Type type = getTypeConverter()->convertType(op.getResult().getType());
    Type memory = op.getMemory().getType();
    auto ptr = dyn_cast<PtrType>(memory);
    auto read = [&]() -> Value {
      Value address = elementAddress(e, *getTypeConverter(), memory,
                                     adaptor.getMemory(), adaptor.getIndices());
      bool stream = op.getCache() == Cache::EvictFirst;
      return LLVM::LoadOp::create(rewriter, op.getLoc(), type, address,
                                  alignmentOf(type), /*isVolatile=*/false,
                                  /*isNonTemporal=*/stream,
                                  /*isInvariant=*/ptr && ptr.getConstant());
    };
    if (!op.getCondition()) {
      rewriter.replaceOp(op, read());
      return success();
    }
    auto branch = scf::IfOp::create(rewriter, op.getLoc(), type,
                                    adaptor.getCondition(), true);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(rewriter, op.getLoc(), read());
    rewriter.setInsertionPointToStart(branch.elseBlock());
    Value zero = arith::ConstantOp::create(
        rewriter, op.getLoc(), cast<TypedAttr>(rewriter.getZeroAttr(type)));
    scf::YieldOp::create(rewriter, op.getLoc(), zero);
    rewriter.replaceOp(op, branch.getResults());
    return success();
  }
};

struct StorePattern : TilePattern<StoreOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(StoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto write = [&](Emitter &e) {
      Value address =
          elementAddress(e, *getTypeConverter(), op.getMemory().getType(),
                         adaptor.getMemory(), adaptor.getIndices());
      LLVM::StoreOp::create(rewriter, op.getLoc(), adaptor.getValue(), address,
                            alignmentOf(op.getValue().getType()));
    };
    if (op.getCondition())
      e.when(adaptor.getCondition(), write);
    else
      write(e);
    rewriter.eraseOp(op);
    return success();
  }
};

struct AtomicPattern : TilePattern<AtomicOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(AtomicOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    bool real = op.getValue().getType().isF32();
    LLVM::AtomicBinOp kind = LLVM::AtomicBinOp::xchg;
    if (op.getKind() == AtomicKind::Add)
      kind = real ? LLVM::AtomicBinOp::fadd : LLVM::AtomicBinOp::add;
    if (op.getKind() == AtomicKind::Max)
      kind = LLVM::AtomicBinOp::max;
    Value address =
        elementAddress(e, *getTypeConverter(), op.getMemory().getType(),
                       adaptor.getMemory(), adaptor.getIndex());
    // NVPTX drops the ordering of an atomicrmw: fences stand for it.
    auto fence = [&] {
      if (!op.getRelaxed())
        LLVM::FenceOp::create(rewriter, op.getLoc(),
                              LLVM::AtomicOrdering::acq_rel, "device");
    };
    fence();
    Value old = LLVM::AtomicRMWOp::create(
        rewriter, op.getLoc(), kind, address, adaptor.getValue(),
        LLVM::AtomicOrdering::monotonic, "device");
    fence();
    rewriter.replaceOp(op, old);
    return success();
  }
};

struct SameAddressPattern : TilePattern<SameAddressOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(SameAddressOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::ICmpOp>(
        op, LLVM::ICmpPredicate::eq, adaptor.getLhs(), adaptor.getRhs());
    return success();
  }
};

struct FencePattern : TilePattern<FenceOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(FenceOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::FenceOp>(
        op, LLVM::AtomicOrdering::acq_rel, "device");
    return success();
  }
};

struct ProxyFencePattern : TilePattern<ProxyFenceOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(ProxyFenceOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::FenceProxyOp>(
        op,
        NVVM::ProxyKindAttr::get(getContext(), NVVM::ProxyKind::async_shared),
        NVVM::SharedSpaceAttr::get(getContext(),
                                   NVVM::SharedSpace::shared_cta));
    return success();
  }
};

struct SharedPattern : TilePattern<SharedOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(SharedOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getOffset())
      return op.emitOpError("has no offset yet; run "
                            "tile-allocate-shared-memory");
    Emitter e(rewriter, op.getLoc());
    Value tile = e.offset(kernel.shared, *op.getOffset());
    if (op.getPerWarpgroup()) {
      int64_t bytes = llvm::alignTo(op.getTile().getType().getBytes(), 1024) *
                      op.getBuffers();
      tile = e.offset(tile, e.mul(kernel.place(op).warpgroup, bytes));
    }
    rewriter.replaceOp(op, tile);
    return success();
  }
};

struct SlicePattern : TilePattern<SliceOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(SliceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    rewriter.replaceOp(op, e.offset(adaptor.getTile(), op.getByteOffset()));
    return success();
  }
};

struct WarpgroupSlicePattern : TilePattern<WarpgroupSliceOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(WarpgroupSliceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    SmemType type = op.getTile().getType();
    int64_t row = type.getSwizzle()
                      ? type.getSwizzle()
                      : type.getShape()[1] * type.getElementBytes();
    Value bytes = e.mul(kernel.place(op).warpgroup, op.getStep() * row);
    if (op.getClamped()) {
      int64_t last =
          type.getShape()[0] - op.getResult().getType().getShape()[0];
      bytes = arith::MinUIOp::create(rewriter, op.getLoc(), bytes,
                                     e.i32(last * row));
    }
    rewriter.replaceOp(op, e.offset(adaptor.getTile(), bytes));
    return success();
  }
};

} // namespace

void llmc::tile::populateMemoryPatterns(const TypeConverter &converter,
                                        RewritePatternSet &patterns,
                                        const KernelLowering &kernel) {
  patterns.add<LoadPattern, StorePattern, AtomicPattern, SameAddressPattern,
               FencePattern, ProxyFencePattern, SharedPattern, SlicePattern,
               WarpgroupSlicePattern>(converter, patterns.getContext(), kernel);
}
