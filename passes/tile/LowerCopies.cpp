// Rings of kernels without roles: cp.async, its groups, and meeting threads.
#include "passes/tile/Lowering.h"

using namespace mlir;
using namespace llmc::tile;

namespace {

bool inRole(Operation *op) { return bool(op->getParentOfType<RoleOp>()); }

/// The 16-byte chunks of a tile that one thread copies.
class ChunkCopier {
public:
  ChunkCopier(Emitter &e, CopyAsyncOp op, const ThreadPlace &place,
              ValueRange memory, Value tile)
      : e(e), type(op.getTile().getType()), memory(memory[0]), row(memory[1]),
        column(memory[2]), rows(memory[3]), tile(tile), thread(place.thread),
        threads(place.threads), columns(op.getColumns()),
        chunk(16 / type.getElementBytes()),
        perLine(type.getSlabColumns() / chunk) {}

  void copyAll() {
    // Where a turn of the threads is whole groups of 8 lines of a slab, a
    // thread's chunks differ by constants only.
    if (threads % (type.getSwizzle() ? 8 * perLine : perLine) == 0)
      copyByLines();
    else
      copyByIndex();
  }

private:
  void copyByLines() {
    int64_t height = type.getShape()[0], step = threads / perLine;
    int64_t pitch = type.getSwizzle()
                        ? type.getSwizzle()
                        : type.getShape()[1] * type.getElementBytes();
    Value r = e.div(thread, perLine);
    Value c = e.mul(e.rem(thread, perLine), chunk);
    Value from = source(r, c), to = target(r, c);
    Value fromRow = e.add(row, r), fromColumn = e.add(column, c);
    for (int64_t first = 0; first < type.getShape()[1];
         first += type.getSlabColumns()) {
      Value exists = e.below(e.add(fromColumn, first), columns);
      int64_t slab = first / type.getSlabColumns() * type.getSlabBytes();
      for (int64_t line = 0; line < height; line += step) {
        auto copy = [&](Emitter &e) {
          Value inside =
              arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::ult,
                                    e.add(fromRow, line), rows);
          int64_t bytes = (line * columns + first) * type.getElementBytes();
          start(e.offset(to, slab + line * pitch), e.offset(from, bytes),
                arith::AndIOp::create(e.b, e.loc, inside, exists));
        };
        if (line + step <= height)
          copy(e);
        else
          e.when(e.below(thread, (height - line) * perLine), copy);
      }
    }
  }

  void copyByIndex() {
    int64_t perRow = type.getShape()[1] / chunk;
    int64_t total = type.getShape()[0] * perRow;
    for (int64_t first = 0; first < total; first += threads) {
      auto copy = [&](Emitter &e) {
        Value index = e.add(thread, first);
        Value r = e.div(index, perRow), c = e.mul(e.rem(index, perRow), chunk);
        Value inside = arith::CmpIOp::create(
            e.b, e.loc, arith::CmpIPredicate::ult, e.add(row, r), rows);
        Value exists = e.below(e.add(column, c), columns);
        start(target(r, c), source(r, c),
              arith::AndIOp::create(e.b, e.loc, inside, exists));
      };
      if (first + threads <= total)
        copy(e);
      else
        e.when(e.below(thread, total - first), copy);
    }
  }

  void start(Value to, Value from, Value inside) {
    Value bytes =
        arith::SelectOp::create(e.b, e.loc, inside, e.i32(16), e.i32(0));
    NVVM::CpAsyncOp::create(e.b, e.loc, to, from, 16,
                            NVVM::LoadCacheModifierKind::CG, bytes);
  }

  /// Address of row r, column c of the tile in global memory.
  Value source(Value r, Value c) {
    Type i64 = e.b.getI64Type();
    Value at = arith::ExtUIOp::create(e.b, e.loc, i64, e.add(row, r));
    at = arith::MulIOp::create(e.b, e.loc, at, e.i64(columns));
    at = arith::AddIOp::create(
        e.b, e.loc, at,
        arith::ExtUIOp::create(e.b, e.loc, i64, e.add(column, c)));
    return LLVM::GEPOp::create(e.b, e.loc, memory.getType(),
                               type.getElementType(), memory,
                               ArrayRef<LLVM::GEPArg>{at});
  }

  /// The same in shared memory.
  Value target(Value r, Value c) {
    int64_t bytes = type.getElementBytes(), span = type.getSwizzle();
    if (!span)
      return e.offset(tile,
                      e.mul(e.add(e.mul(r, type.getShape()[1]), c), bytes));
    Value slab = e.div(c, type.getSlabColumns());
    Value inner = e.mul(e.rem(c, type.getSlabColumns()), bytes);
    Value line = e.rem(e.div(r, 128 / span), span / 16);
    inner = e.bitXor(inner, e.shl(line, 4));
    return e.offset(tile, e.add(e.mul(slab, type.getSlabBytes()),
                                e.add(e.mul(r, span), inner)));
  }

  Emitter &e;
  SmemType type;
  Value memory, row, column, rows, tile, thread;
  int64_t threads, columns, chunk, perLine;
};

struct FillPattern : TilePattern<ProduceOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(ProduceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (inRole(op))
      return failure();
    if (!op.getStage())
      return op.emitOpError("has no stage yet; run tile-assign-stage-phase");
    Emitter e(rewriter, op.getLoc());
    if (op.getMeet())
      e.blockBarrier();
    RingType ring = op.getRing().getType();
    IRMapping mapping;
    mapping.map(op.getBody().getArguments(),
                slotAddresses(e, ring, adaptor.getRing(), adaptor.getStage()));
    auto remap = [&](Value v) {
      Value inside = mapping.lookupOrNull(v);
      return inside ? inside : rewriter.getRemappedValue(v);
    };
    for (Operation &inner : op.getBody().front().without_terminator()) {
      Emitter at(rewriter, inner.getLoc());
      if (auto copy = dyn_cast<CopyAsyncOp>(inner)) {
        SmallVector<Value> memory{remap(copy.getMemory()), remap(copy.getRow()),
                                  remap(copy.getColumn()),
                                  remap(copy.getRows())};
        ChunkCopier(at, copy, kernel.place(op), memory, remap(copy.getTile()))
            .copyAll();
      } else if (auto slice = dyn_cast<SliceOp>(inner)) {
        mapping.map(slice.getResult(),
                    at.offset(remap(slice.getTile()), slice.getByteOffset()));
      } else {
        rewriter.clone(inner, mapping);
      }
    }
    NVVM::CpAsyncCommitGroupOp::create(rewriter, op.getLoc());
    rewriter.eraseOp(op);
    return success();
  }
};

struct TakePattern : TilePattern<AcquireOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(AcquireOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (inRole(op))
      return failure();
    if (!op.getStage())
      return op.emitOpError("has no stage yet; run tile-assign-stage-phase");
    Emitter e(rewriter, op.getLoc());
    if (std::optional<uint32_t> pending = op.getPending()) {
      // Each thread waits for its own copies, then for all threads.
      NVVM::CpAsyncWaitGroupOp::create(rewriter, op.getLoc(), *pending);
      e.blockBarrier();
    }
    RingType ring = op.getRing().getType();
    rewriter.replaceOp(
        op, slotAddresses(e, ring, adaptor.getRing(), adaptor.getStage()));
    return success();
  }
};

/// Nothing to do: the filling that comes next makes the threads meet.
struct GiveBackPattern : TilePattern<ReleaseOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(ReleaseOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (inRole(op))
      return failure();
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void llmc::tile::populateCopyPatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns,
                                      const KernelLowering &kernel) {
  patterns.add<FillPattern, TakePattern, GiveBackPattern>(
      converter, patterns.getContext(), kernel);
}
