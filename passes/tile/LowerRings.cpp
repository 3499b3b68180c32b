// Rings and TMA: waits, arrivals and bulk tensor copies.
#include "passes/tile/Lowering.h"

using namespace mlir;
using namespace llmc::tile;

/// L2 policies as `createpolicy` would encode them.
static constexpr int64_t kEvictFirst = 0x12F0000000000000;
static constexpr int64_t kEvictLast = 0x14F0000000000000;
/// Time limit of one try_wait, in ns; the op loops around it.
static constexpr int64_t kWaitTicks = 10000000;

static void waitFor(Emitter &e, Value barrier, Value phase) {
  NVVM::MBarrierTryWaitParityOp::create(e.b, e.loc, barrier, phase,
                                        e.i32(kWaitTicks));
}

namespace {

/// Copies a tile box by box, each with the barrier of the stage.
void emitTmaLoad(Emitter &e, TmaLoadOp op, Value map, ValueRange coordinates,
                 Value tile, Value barrier) {
  TensorMapType mapType = op.getMap().getType();
  SmemType tileType = op.getTile().getType();
  ArrayRef<int64_t> box = mapType.getShape();
  int64_t boxRows =
      mapType.getBoxBytes() / tileType.getElementBytes() / box.back();
  Value hint;
  if (op.getCache() == Cache::EvictFirst)
    hint = e.i64(kEvictFirst);
  if (op.getCache() == Cache::EvictLast)
    hint = e.i64(kEvictLast);
  auto cluster = LLVM::LLVMPointerType::get(e.b.getContext(), 7);
  for (int64_t c = 0; c < tileType.getShape()[1]; c += box.back())
    for (int64_t r = 0; r < tileType.getShape()[0]; r += boxRows) {
      int64_t bytes =
          tileType.getSwizzle()
              ? c / tileType.getSlabColumns() * tileType.getSlabBytes() +
                    r * tileType.getSwizzle()
              : (r * tileType.getShape()[1] + c) * tileType.getElementBytes();
      // The hardware counts coordinates from the innermost dimension.
      SmallVector<Value> at(llvm::reverse(coordinates));
      at[0] = e.add(at[0], c);
      if (r)
        at[1] = e.add(at[1], r);
      Value to = LLVM::AddrSpaceCastOp::create(e.b, e.loc, cluster,
                                               e.offset(tile, bytes));
      NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
          e.b, e.loc, to, map, at, barrier, ValueRange(), Value(), hint,
          NVVM::TMALoadMode::TILE, false, NVVM::CTAGroupKindAttr(), Value());
    }
}

struct ProducePattern : TilePattern<ProduceOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(ProduceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op->getParentOfType<RoleOp>())
      return failure(); // that of LowerCopies.cpp
    if (!op.getStage() ||
        (op.getPart() != ProducePart::Resume && !op.getBytes()))
      return op.emitOpError("has no stage yet; run tile-assign-stage-phase");
    Emitter e(rewriter, op.getLoc());
    const ThreadPlace &place = kernel.place(op);
    // One thread of one warp produces.
    if (!place.elected) {
      auto first = scf::IfOp::create(rewriter, op.getLoc(),
                                     e.equal(place.warp, 0), false);
      rewriter.setInsertionPointToStart(first.thenBlock());
      Value one = NVVM::ElectSyncOp::create(rewriter, op.getLoc(),
                                            rewriter.getI1Type(), Value());
      auto elect = scf::IfOp::create(rewriter, op.getLoc(), one, false);
      rewriter.setInsertionPointToStart(elect.thenBlock());
    }
    RingType ring = op.getRing().getType();
    Value base = adaptor.getRing(), stage = adaptor.getStage();
    Value full = fullBarrier(e, ring, base, stage);
    if (op.getPart() != ProducePart::Resume) {
      waitFor(e, emptyBarrier(e, ring, base, stage), adaptor.getPhase());
      NVVM::MBarrierArriveExpectTxOp::create(
          rewriter, op.getLoc(), Type(), full, e.i32(*op.getBytes()),
          NVVM::MemScopeKind::CTA, false, Value());
    }
    IRMapping mapping;
    mapping.map(op.getBody().getArguments(),
                slotAddresses(e, ring, base, stage));
    for (Operation &inner : op.getBody().front().without_terminator()) {
      auto remap = [&](Value v) {
        Value inside = mapping.lookupOrNull(v);
        return inside ? inside : rewriter.getRemappedValue(v);
      };
      Emitter at(rewriter, inner.getLoc());
      if (auto slice = dyn_cast<SliceOp>(inner)) {
        mapping.map(slice.getResult(),
                    at.offset(remap(slice.getTile()), slice.getByteOffset()));
      } else if (auto load = dyn_cast<TmaLoadOp>(inner)) {
        SmallVector<Value> coordinates(
            llvm::map_range(load.getCoordinates(), remap));
        emitTmaLoad(at, load, rewriter.getRemappedValue(load.getMap()),
                    coordinates, remap(load.getTile()), full);
      } else {
        rewriter.clone(inner, mapping);
      }
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct PrefetchPattern : TilePattern<PrefetchOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(PrefetchOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> at(llvm::reverse(adaptor.getCoordinates()));
    NVVM::CpAsyncBulkTensorPrefetchOp::create(
        rewriter, op.getLoc(), adaptor.getMap(), at, ValueRange(),
        NVVM::TMALoadMode::TILE, Value());
    rewriter.eraseOp(op);
    return success();
  }
};

struct AcquirePattern : TilePattern<AcquireOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(AcquireOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op->getParentOfType<RoleOp>())
      return failure(); // that of LowerCopies.cpp
    if (!op.getStage())
      return op.emitOpError("has no stage yet; run tile-assign-stage-phase");
    Emitter e(rewriter, op.getLoc());
    RingType ring = op.getRing().getType();
    waitFor(e, fullBarrier(e, ring, adaptor.getRing(), adaptor.getStage()),
            adaptor.getPhase());
    rewriter.replaceOp(
        op, slotAddresses(e, ring, adaptor.getRing(), adaptor.getStage()));
    return success();
  }
};

struct ReleasePattern : TilePattern<ReleaseOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(ReleaseOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op->getParentOfType<RoleOp>())
      return failure(); // that of LowerCopies.cpp
    if (!op.getStage())
      return op.emitOpError("has no stage yet; run tile-assign-stage-phase");
    Emitter e(rewriter, op.getLoc());
    const ThreadPlace &place = kernel.place(op);
    RingType ring = op.getRing().getType();
    auto arrive = [&](Emitter &e) {
      Value empty =
          emptyBarrier(e, ring, adaptor.getRing(), adaptor.getStage());
      // CTA scope on purpose: cluster scope would cost a MEMBAR per stage.
      NVVM::MBarrierArriveOp::create(rewriter, op.getLoc(),
                                     rewriter.getI64Type(), empty, Value());
    };
    if (place.elected) {
      arrive(e);
    } else {
      // wgmma reads are over when its wait returns, those of the warp's other
      // lanes only after they meet.
      if (place.readsShared)
        NVVM::SyncWarpOp::create(rewriter, op.getLoc(), e.i32(-1));
      e.when(e.equal(place.lane, 0), arrive);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct RingPattern : TilePattern<RingOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(RingOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getOffset())
      return op.emitOpError("has no offset yet; run "
                            "tile-allocate-shared-memory");
    Emitter e(rewriter, op.getLoc());
    rewriter.replaceOp(op, e.offset(kernel.shared, *op.getOffset()));
    return success();
  }
};

} // namespace

void llmc::tile::populateRingPatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns,
                                      const KernelLowering &kernel) {
  patterns.add<ProducePattern, PrefetchPattern, AcquirePattern, ReleasePattern,
               RingPattern>(converter, patterns.getContext(), kernel);
}
