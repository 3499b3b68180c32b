// tile-peel-first-step: the first multiply on a fresh accumulator overwrites.
#include "passes/tile/Passes.h"

#include "dialects/tile/TileDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

namespace llmc {
#define GEN_PASS_DEF_TILEPEELFIRSTSTEP
#include "passes/tile/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc::tile;

static bool startsFresh(scf::ForOp loop) {
  return llvm::any_of(loop.getInitArgs(), [](Value init) {
    return init.getDefiningOp<ZeroAccOp>() != nullptr;
  });
}

/// The first iteration is taken out of the loop, so there must be one. Bounds
/// that are not constant are the author's promise (tile.zero_acc says so).
static LogicalResult verifyRuns(scf::ForOp loop) {
  APInt lower, upper;
  if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) ||
      lower.slt(upper))
    return success();
  return loop.emitOpError("expected one iteration or more, as the loop starts "
                          "from tile.zero_acc, got bounds ")
         << lower.getSExtValue() << " to " << upper.getSExtValue();
}

static void peel(scf::ForOp loop) {
  OpBuilder builder(loop);
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), loop.getLowerBound());
  mapping.map(loop.getRegionIterArgs(), loop.getInitArgs());
  for (Operation &op : loop.getBody()->without_terminator())
    builder.clone(op, mapping);
  Value next = arith::AddIOp::create(builder, loop.getLoc(),
                                     loop.getLowerBound(), loop.getStep());
  loop.getLowerBoundMutable().assign(next);
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  SmallVector<Value> carried;
  for (Value value : yield.getOperands())
    carried.push_back(mapping.lookupOrDefault(value));
  loop.getInitArgsMutable().assign(carried);
}

namespace {
struct PeelFirstStep : llmc::impl::TilePeelFirstStepBase<PeelFirstStep> {
  void runOnOperation() override {
    // Inner loops first: their copies are then already peeled.
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](scf::ForOp loop) {
      if (startsFresh(loop))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops) {
      if (failed(verifyRuns(loop)))
        return signalPassFailure();
      peel(loop);
    }
  }
};
} // namespace
