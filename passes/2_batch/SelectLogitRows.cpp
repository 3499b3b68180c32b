//===- SelectLogitRows.cpp - logits only for the rows that need them ------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/2_batch/Passes.h"

#include "dialects/llm/LlmDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace llmc {
#define GEN_PASS_DEF_LLMSELECTLOGITROWS
#include "passes/2_batch/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

// A tensor with a row for each token, rather than a weight or a constant
// repeated for each token.
bool hasRows(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getRank() < 1 || !type.isDynamicDim(0))
    return false;
  auto broadcast = value.getDefiningOp<llm::BroadcastOp>();
  return !broadcast || !cast<RankedTensorType>(broadcast.getInput().getType())
                            .hasStaticShape();
}

// Whether row r of the result depends only on row r of the operands with rows.
bool isRowWise(Operation *op) {
  return isa<llm::LinearOp, llm::RmsNormOp, llm::LayerNormOp, llm::ActivationOp,
             llm::GluOp, llm::PackedGluOp>(op) ||
         (op->hasTrait<OpTrait::Elementwise>() && isMemoryEffectFree(op));
}

struct SelectLogitRowsPass
    : llmc::impl::LlmSelectLogitRowsBase<SelectLogitRowsPass> {
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>("step");
    if (!step || step.getNumArguments() < 5 || step.getNumResults() != 1) {
      getOperation().emitError() << "expected the paged @step(tokens, "
                                    "positions, logit_rows, batch, kv) "
                                    "with logits as its result, found "
                                 << (step ? "another signature" : "no @step")
                                 << "; run llm-convert-to-paged first";
      return signalPassFailure();
    }
    Value rows = step.getArgument(2);
    if (!rows.use_empty())
      return; // selected already

    // From the logits up, as long as there is one value with rows and only its
    // path to the logits needs it.
    Operation *top = step.getBody().front().getTerminator();
    OpOperand *selected = &top->getOpOperand(0);
    SmallVector<Operation *> path;
    while (Operation *op = selected->get().getDefiningOp()) {
      if (!isRowWise(op) || !op->hasOneUse())
        break;
      SmallVector<OpOperand *> withRows;
      for (OpOperand &operand : op->getOpOperands())
        if (hasRows(operand.get()))
          withRows.push_back(&operand);
      if (withRows.size() != 1)
        break;
      path.push_back(op);
      selected = withRows.front();
    }

    OpBuilder builder(selected->getOwner());
    Location loc = selected->getOwner()->getLoc();
    Value gathered = llm::GatherRowsOp::create(
        builder, loc, selected->get().getType(), selected->get(), rows);
    selected->set(gathered);
    Value count;
    for (Operation *op : path)
      for (OpOperand &operand : op->getOpOperands())
        if (auto broadcast = operand.get().getDefiningOp<llm::BroadcastOp>())
          operand.set(repeatFor(broadcast, gathered, count, builder));
  }

  // A broadcast to as many rows as `gathered` has.
  static Value repeatFor(llm::BroadcastOp broadcast, Value gathered,
                         Value &count, OpBuilder &builder) {
    if (broadcast.getSizes().empty())
      return broadcast;
    Location loc = broadcast.getLoc();
    if (!count)
      count = tensor::DimOp::create(builder, loc, gathered, 0);
    return llm::BroadcastOp::create(
        builder, loc, broadcast.getType(), broadcast.getInput(),
        SmallVector<Value>(broadcast.getSizes().size(), count));
  }
};

} // namespace
