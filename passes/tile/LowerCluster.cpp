// Clusters: the rank of a block, and a sum over the two blocks.
#include "passes/tile/Lowering.h"

using namespace mlir;
using namespace llmc::tile;

namespace {

struct ClusterRankPattern : TilePattern<ClusterRankOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(ClusterRankOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::ClusterId>(op, rewriter.getI32Type());
    return success();
  }
};

struct ClusterReducePattern : TilePattern<ClusterReduceOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(ClusterReduceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getOffset())
      return op.emitOpError("has no offset yet; run "
                            "tile-allocate-shared-memory");
    Location loc = op.getLoc();
    Emitter e(rewriter, loc);
    const ThreadPlace &place = kernel.place(op);
    int64_t count = op.getResult().getType().getThreadElements();
    Value rank = NVVM::ClusterId::create(rewriter, loc, rewriter.getI32Type());
    Value first = e.equal(rank, 0);
    auto choose = [&](Value a, Value b) -> Value {
      return arith::SelectOp::create(rewriter, loc, first, a, b);
    };
    auto part = [&](int64_t half, int64_t i) {
      return e.extract(adaptor.getFragment(), half * count + i);
    };
    // Four values of a thread lie together, threads side by side.
    auto quad = VectorType::get({4}, rewriter.getF32Type());
    int64_t stride = place.threads * 16;
    Value mine = e.offset(e.offset(kernel.shared, *op.getOffset()),
                          e.mul(place.thread, 16));
    auto remote = LLVM::LLVMPointerType::get(getContext(), 7);
    Value theirs =
        NVVM::MapaOp::create(rewriter, loc, remote, mine, e.bitXor(rank, 1));
    for (int64_t i = 0; i < count; i += 4) {
      Value four = e.undef(quad);
      for (int64_t n = 0; n < 4; ++n)
        four = LLVM::InsertElementOp::create(
            rewriter, loc, four, choose(part(1, i + n), part(0, i + n)),
            e.i32(n));
      LLVM::StoreOp::create(rewriter, loc, four,
                            e.offset(theirs, i / 4 * stride), 16);
    }
    // Arrive releases the writes, wait acquires those of the other block.
    NVVM::ClusterArriveOp::create(rewriter, loc, rewriter.getUnitAttr());
    NVVM::ClusterWaitOp::create(rewriter, loc, rewriter.getUnitAttr());
    Value storage = e.undef(fragmentStorage(op.getResult().getType()));
    for (int64_t i = 0; i < count; i += 4) {
      Value four = LLVM::LoadOp::create(rewriter, loc, quad,
                                        e.offset(mine, i / 4 * stride), 16);
      for (int64_t n = 0; n < 4; ++n) {
        Value own = choose(part(0, i + n), part(1, i + n));
        Value other =
            LLVM::ExtractElementOp::create(rewriter, loc, four, e.i32(n));
        storage = e.insert(
            storage, arith::AddFOp::create(rewriter, loc, own, other), i + n);
      }
    }
    rewriter.replaceOp(op, storage);
    return success();
  }
};

} // namespace

void llmc::tile::populateClusterPatterns(const TypeConverter &converter,
                                         RewritePatternSet &patterns,
                                         const KernelLowering &kernel) {
  patterns.add<ClusterRankPattern, ClusterReducePattern>(
      converter, patterns.getContext(), kernel);
}
