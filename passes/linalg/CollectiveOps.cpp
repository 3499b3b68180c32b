// One process has one rank: only groups of one have a meaning here.
#include "passes/linalg/Patterns.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

template <typename Op>
static SmallVector<Value> lowerCollective(Op op, typename Op::Adaptor in,
                                          Emitter &e) {
  if (op.getRanks() != 1) {
    op.emitError() << "over " << op.getRanks()
                   << " ranks has no lowering to linalg; only ranks = 1 runs "
                      "in one process";
    return {};
  }
  return {e.convert(in.getInput(),
                    cast<RankedTensorType>(op.getType()).getElementType())};
}

void llmc::populateCollectiveLowerings(RewritePatternSet &patterns) {
  addLowering<AllReduceOp, lowerCollective<AllReduceOp>>(patterns);
  addLowering<AllGatherOp, lowerCollective<AllGatherOp>>(patterns);
  addLowering<ReduceScatterOp, lowerCollective<ReduceScatterOp>>(patterns);
}
