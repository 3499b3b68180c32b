#include "passes/host/AttentionTile.h"
#include "passes/host/Dialects.h"
#include "passes/host/Passes.h"

namespace llmc {
#define GEN_PASS_DEF_HOSTLOWERATTENTION
#include "passes/host/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {
struct HostLowerAttention
    : llmc::impl::HostLowerAttentionBase<HostLowerAttention> {
  using Base::Base;

  void runOnOperation() override {
    VectorShape vectors = VectorShape::ofBits(vectorBits);
    for (KernelOp kernel :
         llvm::make_early_inc_range(getOperation().getOps<KernelOp>())) {
      if (kernel.getBody().front().getOps<PagedAttentionOp>().empty())
        continue;
      auto attention = AttentionShape::of(kernel);
      VectorShape fitting = vectors;
      while (attention && !attention->fits(fitting.lanes))
        fitting.lanes /= 2;
      if (!attention || fitting.lanes < 2) {
        kernel.emitError(
            "is not an attention kernel that the host target can run: it takes "
            "float32 queries, even head sizes, and nothing but reshapes around "
            "llm.paged_attention");
        return signalPassFailure();
      }
      lower(kernel, *attention, fitting);
      kernel.erase();
    }
  }

private:
  // A tile is a block of rows and a KV head; the block may hold rows of several
  // sequences.
  static void lower(KernelOp kernel, const AttentionShape &attention,
                    VectorShape vectors) {
    OpBuilder b(kernel);
    Location loc = kernel.getLoc();
    Entry entry(b, kernel);
    Entry::Tile tile = entry.tile(attention.tokensPerTile(), attention.kvHeads);
    AttentionTile program(b, entry, attention, vectors);
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    auto loop = scf::ForOp::create(b, loc, zero, entry.batch().sequences, one);
    func::ReturnOp::create(b, loc);

    b.setInsertionPointToStart(loop.getBody());
    Value sequence = loop.getInductionVar();
    auto startOf = [&](Value s) -> Value {
      Value start = memref::LoadOp::create(b, loc, entry.batch().queryStart, s);
      return arith::IndexCastOp::create(b, loc, b.getIndexType(), start);
    };
    Value first =
        arith::MaxUIOp::create(b, loc, startOf(sequence), tile.rowBegin);
    Value next = startOf(arith::AddIOp::create(b, loc, sequence, one));
    Value end = arith::MinUIOp::create(b, loc, next, tile.rowEnd);
    Value meets =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, first, end);
    auto branch = scf::IfOp::create(b, loc, meets);
    b.setInsertionPointToStart(branch.thenBlock());
    program.emit(sequence, tile.column, first, end);
  }
};
} // namespace
