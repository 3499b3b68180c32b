//===- RaiseRope.cpp - rotary position embeddings -------------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A rotary embedding is recognised by what it computes, not by how it is
// written. For every position i along the head dimension the candidate is
// evaluated to a sum of products of elements; it is a rope when these sums are
//   x[i] cos(p f[k]) - x[i + d] sin(p f[k])   for the first element of a pair,
//   x[i] cos(p f[k]) + x[i - d] sin(p f[k])   for the second,
//   x[i]                                      behind the rotated part.
//
//===----------------------------------------------------------------------===//

#include "passes/1_raise/Match.h"
#include "passes/1_raise/Passes.h"
#include "passes/1_raise/Rotation.h"
#include "passes/Describe.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace llmc {
#define GEN_PASS_DEF_LLMRAISEROPE
#include "passes/1_raise/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

struct RaiseRopePass : llmc::impl::LlmRaiseRopeBase<RaiseRopePass> {
  void runOnOperation() override {
    RotationMatcher matcher(getOperation());
    DenseMap<Operation *, std::string> reasons;
    // Users before producers: the outermost value that is a rope is replaced,
    // and what it was made of goes away before it is looked at.
    for (Operation *op : llvm::reverse(matcher.getDependentOps())) {
      // A scaled rope is raised below its scale.
      if (!isOpTriviallyDead(op) && !isScaling(op)) {
        std::string reason;
        if (std::optional<Rotation> rotation =
                matcher.match(op->getResult(0), reason))
          raise(op, *rotation);
        else
          reasons[op] = std::move(reason);
      }
      if (isOpTriviallyDead(op))
        op->erase();
    }
    reportRemainder(reasons);
  }

  static bool isScaling(Operation *op) {
    return isa<arith::MulFOp, arith::DivFOp>(op) &&
           llvm::any_of(op->getOperands(), [](Value value) {
             return splatValue(value).has_value();
           });
  }

  void raise(Operation *op, const Rotation &rotation) {
    OpBuilder builder(op);
    Location loc = op->getLoc();
    auto [cos, sin] = tableOf(rotation, builder);
    Value input = rotation.input.materialize(builder, loc);
    Value rope = llm::RopeOp::create(builder, loc, input.getType(),
                                     rotation.style, input, cos, sin);
    op->getResult(0).replaceAllUsesWith(
        rotation.restoreShape(rope, builder, loc));
  }

  // One table for all ropes of equal angles, placed where its first user is.
  std::pair<Value, Value> tableOf(const Rotation &rotation,
                                  OpBuilder &builder) {
    FloatAttr scale = builder.getF64FloatAttr(rotation.scale);
    auto key = std::make_tuple(rotation.positions, rotation.frequencies, scale);
    auto type = RankedTensorType::get(
        {cast<RankedTensorType>(rotation.positions.getType()).getDimSize(0),
         cast<RankedTensorType>(rotation.frequencies.getType()).getDimSize(0)},
        builder.getF32Type());
    auto [it, isNew] = tables.try_emplace(key);
    if (isNew) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&getOperation().getBody().front());
      for (Value operand : {rotation.positions, rotation.frequencies})
        if (Operation *def = operand.getDefiningOp();
            def && !def->isBeforeInBlock(&*builder.getInsertionPoint()))
          builder.setInsertionPointAfter(def);
      auto table = llm::RopeTableOp::create(
          builder, rotation.cosLoc, TypeRange{type, type}, rotation.positions,
          rotation.frequencies, scale);
      it->second = {table.getCos(), table.getSin()};
    }
    return it->second;
  }

  // Whatever still depends on cosines or sines of positions is not understood;
  // the outermost such value says most.
  void reportRemainder(const DenseMap<Operation *, std::string> &reasons) {
    RotationMatcher matcher(getOperation());
    if (matcher.getDependentOps().empty())
      return;
    Operation *remainder = matcher.getDependentOps().back();
    InFlightDiagnostic error =
        remainder->emitError()
        << "expected cosines and sines to serve rotary position embeddings "
           "only, found a value in "
        << describe(remainder->getLoc())
        << " that is not a rotation of pairs of head elements";
    if (auto reason = reasons.find(remainder); reason != reasons.end())
      error << ": " << reason->second;
    error.attachNote() << "rotations of the pairs (i, i + n/2) or (2i, 2i + 1) "
                          "among the first n "
                          "elements of each head by angles position * "
                          "frequency are known; write "
                          "the model's rotation in one of these forms or "
                          "extend llm-raise-rope";
    signalPassFailure();
  }

  DenseMap<std::tuple<Value, Value, FloatAttr>, std::pair<Value, Value>> tables;
};

} // namespace
