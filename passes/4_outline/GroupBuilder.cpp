//===- GroupBuilder.cpp - turns a partition into llm.group ----------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/4_outline/GroupBuilder.h"

#include "dialects/llm/LlmDialect.h"
#include "passes/4_outline/StepSizes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace llmc {

//===----------------------------------------------------------------------===//
// KernelGroup, KernelGroups
//===----------------------------------------------------------------------===//

Operation *KernelGroup::lastOp() const {
  return *llvm::max_element(
      ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
}

KernelGroup *KernelGroups::create(KernelKind kind, Operation *op) {
  all.emplace_back();
  all.back().kind = kind;
  if (op)
    add(&all.back(), op);
  return &all.back();
}

void KernelGroups::add(KernelGroup *group, Operation *op) {
  group->ops.push_back(op);
  owner[op] = group;
}

void KernelGroups::move(Operation *op, KernelGroup *to) {
  KernelGroup *from = groupOf(op);
  add(to, op);
  llvm::erase(from->ops, op);
  if (from->ops.empty())
    all.remove_if([&](KernelGroup &group) { return &group == from; });
}

KernelGroup *KernelGroups::producer(Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op)
    return nullptr;
  if (KernelGroup *group = groupOf(op))
    return group;
  if (!copied.contains(op) || isa<tensor::DimOp>(op))
    return nullptr;
  for (Value operand : op->getOperands())
    if (KernelGroup *group = producer(operand))
      return group;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// buildGroups
//===----------------------------------------------------------------------===//

namespace {
class GroupBuilder {
public:
  GroupBuilder(func::FuncOp step, KernelGroups groups)
      : block(step.getBody().front()), groups(std::move(groups)), sizes(step) {}

  LogicalResult run();

private:
  LogicalResult order();
  void copyInto(KernelGroup &group);
  Value copyOf(Value value, Operation *user, IRMapping &copies,
               SmallVectorImpl<Operation *> &ops);
  void rootDims(KernelGroup &group);
  void build(KernelGroup &group);
  void placeLeaves();

  Block &block;
  KernelGroups groups;
  StepSizes sizes;
  SmallVector<KernelGroup *> ordered;
};
} // namespace

LogicalResult GroupBuilder::run() {
  for (KernelGroup &group : groups.all)
    llvm::sort(group.ops, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
  if (failed(order()))
    return failure();
  for (KernelGroup *group : ordered)
    copyInto(*group);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (groups.copied.contains(&op) && op.use_empty())
      op.erase();
  // Sizes are known of values of the flat step: all groups read them before any
  // is built.
  for (KernelGroup *group : ordered)
    rootDims(*group);
  for (KernelGroup *group : ordered)
    build(*group);
  placeLeaves();
  return success();
}

// Depth-first from each group in program order to the groups it needs.
LogicalResult GroupBuilder::order() {
  llvm::DenseMap<KernelGroup *, llvm::SetVector<KernelGroup *>> needs;
  KernelGroup *lastEffect = nullptr;
  for (Operation &op : block.without_terminator()) {
    KernelGroup *group = groups.groupOf(&op);
    if (!group)
      continue;
    for (Value operand : op.getOperands())
      if (KernelGroup *needed = groups.producer(operand))
        needs[group].insert(needed);
    if (isMemoryEffectFree(&op))
      continue;
    if (lastEffect)
      needs[group].insert(lastEffect);
    lastEffect = group;
  }

  enum State { Unvisited, Open, Done };
  llvm::DenseMap<KernelGroup *, State> state;
  auto visit = [&](auto &self, KernelGroup *group) -> LogicalResult {
    if (state[group] == Done)
      return success();
    if (state[group] == Open)
      return group->ops.front()->emitError()
             << "the ops of this " << kernelAnchor(group->kind)
             << " kernel cannot run together: another kernel is needed between "
                "them";
    state[group] = Open;
    for (KernelGroup *needed : needs[group])
      if (needed != group && failed(self(self, needed)))
        return failure();
    state[group] = Done;
    ordered.push_back(group);
    return success();
  };
  SmallVector<KernelGroup *> program;
  for (KernelGroup &group : groups.all)
    program.push_back(&group);
  llvm::sort(program, [](KernelGroup *a, KernelGroup *b) {
    return a->lastOp()->isBeforeInBlock(b->lastOp());
  });
  for (KernelGroup *group : program)
    if (failed(visit(visit, group)))
      return failure();
  return success();
}

// The copy of `value` that `user` may use, made in front of `user` if need be.
Value GroupBuilder::copyOf(Value value, Operation *user, IRMapping &copies,
                           SmallVectorImpl<Operation *> &ops) {
  Operation *op = value.getDefiningOp();
  if (!op || !groups.copied.contains(op))
    return value;
  if (Value copy = copies.lookupOrNull(value))
    return copy;
  IRMapping operands;
  for (Value operand : op->getOperands())
    operands.map(operand, copyOf(operand, user, copies, ops));
  Operation *copy = OpBuilder(user).clone(*op, operands);
  ops.push_back(copy);
  copies.map(op->getResults(), copy->getResults());
  return copies.lookup(value);
}

void GroupBuilder::copyInto(KernelGroup &group) {
  IRMapping copies;
  SmallVector<Operation *> ops;
  for (Operation *op : group.ops) {
    for (OpOperand &operand : op->getOpOperands())
      operand.set(copyOf(operand.get(), op, copies, ops));
    ops.push_back(op);
  }
  group.ops = std::move(ops);
}

// A size is read from a tensor that the kernel has anyway, so that the size
// alone does not make a tensor an operand.
void GroupBuilder::rootDims(KernelGroup &group) {
  llvm::SetVector<Value> operands;
  for (Operation *op : group.ops)
    if (!isa<tensor::DimOp>(op))
      for (Value operand : op->getOperands())
        if (isa<RankedTensorType>(operand.getType()) &&
            !llvm::is_contained(group.ops, operand.getDefiningOp()))
          operands.insert(operand);
  for (Operation *op : group.ops) {
    auto dim = dyn_cast<tensor::DimOp>(op);
    std::optional<int64_t> index = dim ? dim.getConstantIndex() : std::nullopt;
    if (!index)
      continue;
    std::optional<StepSize> size = sizes.dim(dim.getSource(), *index);
    auto sameSize = [&](Value operand) {
      return size &&
             cast<RankedTensorType>(operand.getType()).getRank() > *index &&
             sizes.dim(operand, *index) == size;
    };
    auto found = llvm::find_if(operands, sameSize);
    if (found != operands.end())
      dim.getSourceMutable().assign(*found);
  }
}

void GroupBuilder::build(KernelGroup &group) {
  llvm::SmallPtrSet<Operation *, 16> members(group.ops.begin(),
                                             group.ops.end());
  SmallVector<Value> results;
  for (Operation *op : group.ops)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !members.contains(user);
          }))
        results.push_back(result);

  Operation *anchor = *llvm::find_if(group.ops, [&](Operation *op) {
    return startedKind(op) == group.kind || op == group.ops.back();
  });
  OpBuilder builder(block.getTerminator());
  auto op = llm::GroupOp::create(builder, anchor->getLoc(),
                                 TypeRange(ValueRange(results)),
                                 kernelAnchor(group.kind));
  Block *body = builder.createBlock(&op.getBody());
  for (Operation *member : group.ops)
    member->moveBefore(body, body->end());
  for (auto [inner, outer] : llvm::zip_equal(results, op.getResults()))
    inner.replaceUsesWithIf(outer, [&](OpOperand &use) {
      return !members.contains(use.getOwner());
    });
  llm::YieldOp::create(builder, anchor->getLoc(), results);
}

// Weights and cache layers stand in front of the first group that uses them.
void GroupBuilder::placeLeaves() {
  SmallVector<Operation *> leaves;
  for (Operation &op : block)
    if (isa<llm::WeightOp, llm::KvLayerOp>(op))
      leaves.push_back(&op);
  for (Operation *leaf : leaves) {
    Operation *first = block.getTerminator();
    for (Operation *user : leaf->getUsers()) {
      Operation *ancestor = block.findAncestorOpInBlock(*user);
      if (ancestor->isBeforeInBlock(first))
        first = ancestor;
    }
    leaf->moveBefore(first);
  }
}

LogicalResult buildGroups(func::FuncOp step, KernelGroups groups) {
  return GroupBuilder(step, std::move(groups)).run();
}

} // namespace llmc
