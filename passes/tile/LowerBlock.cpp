// Threads, distributed loops, reductions and barriers.
#include "passes/tile/Lowering.h"

#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace llmc::tile;

/// Barrier over the threads of `scope` around `op`.
static void emitBarrier(Emitter &e, const ThreadPlace &place, Scope scope) {
  if (scope == Scope::Warp) {
    NVVM::SyncWarpOp::create(e.b, e.loc, e.i32(-1));
  } else if (scope == Scope::Warpgroup) {
    Value id = e.add(place.warpgroup, place.warpgroupBarriers);
    e.barrier(id, 128);
  } else if (place.barrier == 0) {
    e.blockBarrier();
  } else {
    e.barrier(e.i32(place.barrier), place.threads);
  }
}

namespace {

template <typename Op, Value ThreadPlace::*member>
struct PlacePattern : TilePattern<Op> {
  using TilePattern<Op>::TilePattern;
  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, this->kernel.place(op).*member);
    return success();
  }
};

struct BarrierPattern : TilePattern<BarrierOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(BarrierOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    emitBarrier(e, kernel.place(op), op.getScope());
    rewriter.eraseOp(op);
    return success();
  }
};

struct UniformPattern : TilePattern<UniformOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(UniformOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    rewriter.replaceOpWithNewOp<NVVM::ShflOp>(
        op, rewriter.getI32Type(), e.i32(-1), adaptor.getValue(), e.i32(0),
        e.i32(31), NVVM::ShflKind::idx, UnitAttr());
    return success();
  }
};

struct ForEachPattern : TilePattern<ForEachOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(ForEachOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    const ThreadPlace &place = kernel.place(op);
    Value thread = place.thread;
    int64_t threads = place.threads;
    if (op.getScope() == Scope::Warp) {
      thread = place.lane;
      threads = 32;
    } else if (op.getScope() == Scope::Warpgroup) {
      thread = e.rem(thread, 128);
      threads = 128;
    }
    Value lower = e.add(adaptor.getLower(), e.mul(thread, op.getVector()));
    auto loop =
        scf::ForOp::create(rewriter, op.getLoc(), lower, adaptor.getUpper(),
                           e.i32(threads * op.getVector()), adaptor.getInit());
    Block *body = loop.getBody();
    if (!body->empty())
      rewriter.eraseOp(body->getTerminator());
    auto yield = cast<YieldOp>(op.getBody().front().getTerminator());
    rewriter.mergeBlocks(&op.getBody().front(), body, body->getArguments());
    rewriter.setInsertionPoint(yield);
    rewriter.replaceOpWithNewOp<scf::YieldOp>(yield, yield.getOperands());
    rewriter.replaceOp(op, loop.getResults());
    return success();
  }
};

/// One step of a reduction: (value, index) pairs for argmax.
SmallVector<Value> combine(Emitter &e, ReduceKind kind, ValueRange x,
                           ValueRange y) {
  OpBuilder &b = e.b;
  Location loc = e.loc;
  bool real = isa<FloatType>(x[0].getType());
  switch (kind) {
  case ReduceKind::Add:
    return {real ? arith::AddFOp::create(b, loc, x[0], y[0]).getResult()
                 : arith::AddIOp::create(b, loc, x[0], y[0]).getResult()};
  case ReduceKind::Max:
    return {real ? arith::MaxNumFOp::create(b, loc, x[0], y[0]).getResult()
                 : arith::MaxSIOp::create(b, loc, x[0], y[0]).getResult()};
  case ReduceKind::Min:
    return {real ? arith::MinNumFOp::create(b, loc, x[0], y[0]).getResult()
                 : arith::MinSIOp::create(b, loc, x[0], y[0]).getResult()};
  case ReduceKind::Argmax:
    break;
  }
  Value more =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, y[0], x[0]);
  Value equal =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, y[0], x[0]);
  Value first =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, y[1], x[1]);
  Value tie = arith::AndIOp::create(b, loc, equal, first);
  Value take = arith::OrIOp::create(b, loc, more, tie);
  return {arith::SelectOp::create(b, loc, take, y[0], x[0]).getResult(),
          arith::SelectOp::create(b, loc, take, y[1], x[1]).getResult()};
}

/// The value that changes nothing.
SmallVector<Value> identity(Emitter &e, ReduceKind kind, TypeRange types) {
  if (isa<FloatType>(types[0])) {
    float inf = std::numeric_limits<float>::infinity();
    float value = kind == ReduceKind::Add   ? 0.0f
                  : kind == ReduceKind::Min ? inf
                                            : -inf;
    SmallVector<Value> values{e.f32(value)};
    if (kind == ReduceKind::Argmax)
      values.push_back(e.i32(std::numeric_limits<int32_t>::max()));
    return values;
  }
  int64_t value = kind == ReduceKind::Add   ? 0
                  : kind == ReduceKind::Min ? INT32_MAX
                                            : INT32_MIN;
  return {e.i32(value)};
}

struct ReducePattern : TilePattern<ReduceOp> {
  using TilePattern::TilePattern;

  SmallVector<Value> overLanes(Emitter &e, ReduceKind kind,
                               SmallVector<Value> values, int64_t lanes) const {
    for (int64_t distance = lanes / 2; distance; distance /= 2) {
      SmallVector<Value> other;
      for (Value v : values)
        other.push_back(e.shuffleXor(v, distance));
      values = combine(e, kind, values, other);
    }
    return values;
  }

  LogicalResult
  matchAndRewrite(ReduceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    const ThreadPlace &place = kernel.place(op);
    int64_t warps = place.threads / 32;
    Value warp = place.warp;
    if (op.getScope() == Scope::Warp)
      warps = 1;
    if (op.getScope() == Scope::Warpgroup)
      warps = 4;
    SmallVector<Value> values =
        overLanes(e, op.getKind(), adaptor.getValues(), 32);
    if (warps == 1) {
      rewriter.replaceOp(op, values);
      return success();
    }
    if (!op.getOffset())
      return op.emitOpError("has no offset yet; run "
                            "tile-allocate-shared-memory");
    // One row of 32 slots per value; a warpgroup uses its own four.
    Value scratch = e.offset(kernel.shared, *op.getOffset());
    Value first = e.i32(0);
    if (op.getScope() == Scope::Warpgroup)
      first = e.mul(place.warpgroup, 4);
    auto slot = [&](Value index, unsigned row) {
      return e.offset(e.offset(scratch, row * 128), e.mul(index, 4));
    };
    // In a loop the last turn's readers may still be under way.
    if (op->getParentOfType<LoopLikeOpInterface>() ||
        op->getParentOfType<ForEachOp>())
      emitBarrier(e, place, op.getScope());
    e.when(e.equal(place.lane, 0), [&](Emitter &e) {
      for (auto [row, value] : llvm::enumerate(values))
        LLVM::StoreOp::create(e.b, e.loc, value, slot(warp, row), 4);
    });
    emitBarrier(e, place, op.getScope());
    int64_t lanes = llvm::PowerOf2Ceil(warps);
    Value mine = e.rem(place.lane, lanes);
    SmallVector<Value> partial;
    for (auto [row, value] : llvm::enumerate(values))
      partial.push_back(LLVM::LoadOp::create(e.b, e.loc, value.getType(),
                                             slot(e.add(first, mine), row), 4));
    if (lanes != warps) {
      SmallVector<Value> none =
          identity(e, op.getKind(), adaptor.getValues().getTypes());
      Value holds = e.below(mine, warps);
      for (auto [value, zero] : llvm::zip(partial, none))
        value = arith::SelectOp::create(e.b, e.loc, holds, value, zero);
    }
    rewriter.replaceOp(op, overLanes(e, op.getKind(), partial, lanes));
    return success();
  }
};

struct ProgramIdPattern : TilePattern<ProgramIdOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(ProgramIdOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type i32 = rewriter.getI32Type();
    if (op.getAxis() == Axis::X)
      rewriter.replaceOpWithNewOp<NVVM::BlockIdXOp>(op, i32);
    else if (op.getAxis() == Axis::Y)
      rewriter.replaceOpWithNewOp<NVVM::BlockIdYOp>(op, i32);
    else
      rewriter.replaceOpWithNewOp<NVVM::BlockIdZOp>(op, i32);
    return success();
  }
};

struct NumProgramsPattern : TilePattern<NumProgramsOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(NumProgramsOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type i32 = rewriter.getI32Type();
    if (op.getAxis() == Axis::X)
      rewriter.replaceOpWithNewOp<NVVM::GridDimXOp>(op, i32);
    else if (op.getAxis() == Axis::Y)
      rewriter.replaceOpWithNewOp<NVVM::GridDimYOp>(op, i32);
    else
      rewriter.replaceOpWithNewOp<NVVM::GridDimZOp>(op, i32);
    return success();
  }
};

struct RasterPattern : TilePattern<RasterOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(RasterOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    OpBuilder &b = rewriter;
    Location loc = op.getLoc();
    Emitter e(rewriter, loc);
    Value index = adaptor.getIndex();
    Value width = e.mul(adaptor.getColumns(), op.getGroup());
    Value group = arith::DivUIOp::create(b, loc, index, width);
    Value firstRow = e.mul(group, op.getGroup());
    Value left = arith::SubIOp::create(b, loc, adaptor.getRows(), firstRow);
    Value height = arith::MinUIOp::create(b, loc, left, e.i32(op.getGroup()));
    Value before = arith::MulIOp::create(b, loc, group, width);
    Value inGroup = arith::SubIOp::create(b, loc, index, before);
    Value column = arith::DivUIOp::create(b, loc, inGroup, height);
    Value above = arith::MulIOp::create(b, loc, column, height);
    Value row = e.add(firstRow, arith::SubIOp::create(b, loc, inGroup, above));
    rewriter.replaceOp(op, {row, column});
    return success();
  }
};

struct PdlWaitPattern : TilePattern<PdlWaitOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(PdlWaitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::GriddepcontrolOp>(
        op, NVVM::GridDepActionKind::wait);
    return success();
  }
};

struct PdlLaunchPattern : TilePattern<PdlLaunchOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(PdlLaunchOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::GriddepcontrolOp>(
        op, NVVM::GridDepActionKind::launch_dependents);
    return success();
  }
};

} // namespace

void llmc::tile::populateBlockPatterns(const TypeConverter &converter,
                                       RewritePatternSet &patterns,
                                       const KernelLowering &kernel) {
  patterns.add<PlacePattern<ThreadIndexOp, &ThreadPlace::thread>,
               PlacePattern<WarpIndexOp, &ThreadPlace::warp>,
               PlacePattern<WarpgroupIndexOp, &ThreadPlace::warpgroup>,
               UniformPattern, BarrierPattern, ForEachPattern, ReducePattern,
               ProgramIdPattern, NumProgramsPattern, RasterPattern,
               PdlWaitPattern, PdlLaunchPattern>(converter,
                                                 patterns.getContext(), kernel);
}
