// Fragments to global memory through shared memory: stmatrix, TMA store.
#include "passes/tile/Lowering.h"

using namespace mlir;
using namespace llmc::tile;

namespace {

struct StoreTmaPattern : TilePattern<StoreTmaOp> {
  using TilePattern::TilePattern;

  /// One slab of 32-bit elements: each thread writes its pairs of neighbours.
  /// The swizzle spreads the 8 rows of a warp's store over all banks.
  static void storePairs(Emitter &e, StoreTmaOp op, OpAdaptor adaptor,
                         const ThreadPlace &place, int64_t slab, Value buffer) {
    SmemType tile = op.getStaging().getType();
    int64_t span = tile.getSwizzle(), blocks = tile.getShape()[1] / 8;
    auto pair = VectorType::get({2}, tile.getElementType());
    Value row = e.add(e.mul(e.rem(place.warp, 4), 16), e.div(place.lane, 4));
    // Rows r and r + 8 are swizzled alike.
    Value line = e.shl(e.rem(e.div(row, 128 / span), span / 16), 4);
    Value inner = e.shl(e.rem(place.lane, 4), 3);
    Value swizzled = e.bitXor(inner, line);
    Value start = e.mul(row, span);
    for (int64_t j = 0; j < blocks; ++j)
      for (int64_t h = 0; h < 2; ++h) {
        int64_t at = ((slab * blocks + j) * 2 + h) * 2;
        Value value = LLVM::UndefOp::create(e.b, e.loc, pair);
        for (int64_t n : {0, 1})
          value = LLVM::InsertElementOp::create(
              e.b, e.loc, value, e.extract(adaptor.getFragment(), at + n),
              e.i32(n));
        Value offset =
            e.add(e.add(start, h * 8 * span), e.bitXor(swizzled, 32 * j));
        LLVM::StoreOp::create(e.b, e.loc, value, e.offset(buffer, offset), 8);
      }
  }

  LogicalResult
  matchAndRewrite(StoreTmaOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    MLIRContext *context = getContext();
    Location loc = op.getLoc();
    Emitter e(rewriter, loc);
    const ThreadPlace &place = kernel.place(op);
    SmemType tile = op.getStaging().getType();
    int64_t buffers = op.getStaging().getDefiningOp<SharedOp>().getBuffers();
    int64_t bufferBytes = llvm::alignTo(tile.getBytes(), 1024);
    int64_t span = tile.getSwizzle(), width = tile.getShape()[1];
    int64_t bytes = tile.getElementBytes();
    int64_t slabs = op.getFragment().getType().getShape()[1] / width;

    Value leader = e.equal(e.rem(place.thread, 128), 0);
    Value barrier = e.add(place.warpgroup, place.warpgroupBarriers);
    // stmatrix x4: lanes 0-15 address the rows of the first 8 columns, lanes
    // 16-31 those of the next 8.
    Value row = e.add(e.mul(e.rem(place.warp, 4), 16), e.rem(place.lane, 16));
    Value line = e.rem(e.div(row, 128 / span), span / 16);
    Value chunk = e.shl(e.bitXor(e.div(place.lane, 16), line), 4);
    Value rowOffset = e.mul(row, span);

    auto shape = NVVM::LdStMatrixShapeAttr::get(context, 8, 8);
    for (int64_t slab = 0; slab < slabs; ++slab) {
      // Where the number of slabs is not a multiple of the buffers, the first
      // slab of a tile meets the last of the tile before in its buffer.
      int64_t pending = slab == 0 && slabs % buffers ? 0 : buffers - 1;
      e.when(leader, [&](Emitter &e) {
        NVVM::CpAsyncBulkWaitGroupOp::create(rewriter, loc, pending,
                                             rewriter.getUnitAttr());
      });
      e.barrier(barrier, 128);
      Value buffer =
          e.offset(adaptor.getStaging(), slab % buffers * bufferBytes);
      if (bytes == 4)
        storePairs(e, op, adaptor, place, slab, buffer);
      else
        for (int64_t i = 0; i < width / 16; ++i) {
          SmallVector<Value> registers;
          for (int64_t r = 0; r < 4; ++r)
            registers.push_back(LLVM::BitcastOp::create(
                rewriter, loc, rewriter.getI32Type(),
                e.extract(adaptor.getFragment(),
                          (slab * width / 8 + 2 * i) * 2 + r)));
          Value address =
              e.offset(buffer, e.add(rowOffset, e.bitXor(chunk, 32 * i)));
          NVVM::StMatrixOp::create(rewriter, loc, address, registers,
                                   NVVM::MMALayout::row, shape,
                                   NVVM::LdStMatrixEltType::B16);
        }
      NVVM::FenceProxyOp::create(
          rewriter, loc,
          NVVM::ProxyKindAttr::get(context, NVVM::ProxyKind::async_shared),
          NVVM::SharedSpaceAttr::get(context, NVVM::SharedSpace::shared_cta));
      e.barrier(barrier, 128);
      e.when(leader, [&](Emitter &e) {
        SmallVector<Value> at(llvm::reverse(adaptor.getCoordinates()));
        at[0] = e.add(at[0], slab * width);
        if (op.getAccumulate())
          NVVM::CpAsyncBulkTensorReduceOp::create(
              rewriter, loc, adaptor.getMap(), buffer, NVVM::TMAReduxKind::ADD,
              NVVM::TMAStoreMode::TILE, at, Value());
        else
          NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
              rewriter, loc, adaptor.getMap(), buffer, at, Value(),
              NVVM::TMAStoreMode::TILE, Value());
        NVVM::CpAsyncBulkCommitGroupOp::create(rewriter, loc);
      });
    }
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void llmc::tile::populateStoreTmaPatterns(const TypeConverter &converter,
                                          RewritePatternSet &patterns,
                                          const KernelLowering &kernel) {
  patterns.add<StoreTmaPattern>(converter, patterns.getContext(), kernel);
}
