//===- PlanMemory.cpp - gives every launch result its place ---------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/4_outline/KernelKinds.h"
#include "passes/4_outline/StepFunction.h"
#include "passes/5_plan/AssignOffsets.h"
#include "passes/5_plan/MemoryPlan.h"
#include "passes/5_plan/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace llmc {
#define GEN_PASS_DEF_LLMPLANMEMORY
#include "passes/5_plan/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

class Planner {
public:
  Planner(func::FuncOp step, StepLimits limits, int64_t alignment)
      : step(step), limits(limits), alignment(alignment), sizes(step) {}

  LogicalResult run();

private:
  LogicalResult addLaunch(int64_t index, llm::LaunchOp launch);
  std::optional<unsigned> chooseTie(int64_t index, llm::LaunchOp launch);
  int64_t lastUse(Value value) const;
  // The number of a new block, of `bytes` bytes.
  size_t addBlock(int64_t bytes, int64_t first, int64_t last);
  void annotate();

  func::FuncOp step;
  StepLimits limits;
  int64_t alignment;
  StepSizes sizes;
  SmallVector<llm::LaunchOp> launches;
  llvm::DenseMap<Operation *, int64_t> indexOf;
  // Tied values share a block.
  SmallVector<MemoryBlock> blocks;
  // Bytes of each block before rounding up to the alignment.
  SmallVector<int64_t> exactBytes;
  llvm::DenseMap<Value, size_t> blockOf;
  llvm::DenseMap<Operation *, size_t> workspaceOf;
};

} // namespace

// True when the only result of `kernel` may overwrite argument `index`: every
// op that depends on the argument computes an element of its result from the
// same element of the argument, so none is read after it has been written.
static bool mayOverwrite(llm::KernelOp kernel, unsigned index) {
  Block &body = kernel.getBody().front();
  auto type = cast<RankedTensorType>(body.getArgument(index).getType());
  llvm::DenseSet<Value> dependent = {body.getArgument(index)};
  for (Operation &op : body.without_terminator()) {
    if (llvm::none_of(op.getOperands(), [&](Value operand) {
          return dependent.contains(operand);
        }))
      continue;
    if (!isElementwiseOp(&op) ||
        cast<RankedTensorType>(op.getResult(0).getType()).getShape() !=
            type.getShape())
      return false;
    dependent.insert(op.getResult(0));
  }
  return dependent.contains(body.getTerminator()->getOperand(0));
}

int64_t Planner::lastUse(Value value) const {
  int64_t last = indexOf.lookup(value.getDefiningOp());
  for (Operation *user : value.getUsers())
    last =
        std::max(last, isa<func::ReturnOp>(user) ? int64_t(launches.size()) - 1
                                                 : indexOf.lookup(user));
  return last;
}

// The operand whose buffer the result of `launch` takes over: a residual stream
// stays in place through all layers.
std::optional<unsigned> Planner::chooseTie(int64_t index,
                                           llm::LaunchOp launch) {
  if (launch.getNumResults() != 1)
    return std::nullopt;
  llm::KernelOp kernel = kernelOf(launch);
  for (auto [number, operand] : llvm::enumerate(launch.getOperands())) {
    bool isOnlyUse = llvm::count(launch.getOperands(), operand) == 1;
    bool isReturned =
        llvm::any_of(operand.getUsers(), llvm::IsaPred<func::ReturnOp>);
    if (blockOf.contains(operand) && isOnlyUse && !isReturned &&
        lastUse(operand) == index &&
        operand.getType() == launch.getResult(0).getType() &&
        sizes.shape(operand) == sizes.shape(launch.getResult(0)) &&
        mayOverwrite(kernel, number))
      return number;
  }
  return std::nullopt;
}

size_t Planner::addBlock(int64_t bytes, int64_t first, int64_t last) {
  MemoryBlock block;
  block.size = llvm::alignTo(bytes, alignment);
  block.first = first;
  block.last = last;
  blocks.push_back(block);
  exactBytes.push_back(bytes);
  return blocks.size() - 1;
}

LogicalResult Planner::addLaunch(int64_t index, llm::LaunchOp launch) {
  for (OpResult result : launch->getResults())
    if (failed(bytesAtLimits(result, sizes, limits)))
      return failure();
  if (int64_t workspace = kernelOf(launch).getWorkspace().value_or(0))
    workspaceOf[launch] = addBlock(workspace, index, index);
  launch.removeTiedAttr();
  if (std::optional<unsigned> operand = chooseTie(index, launch)) {
    Value result = launch.getResult(0);
    size_t block = blockOf.lookup(launch.getOperands()[*operand]);
    blockOf[result] = block;
    blocks[block].last = lastUse(result);
    launch.setTied(ArrayRef<int64_t>{0, *operand});
    return success();
  }
  for (OpResult result : launch->getResults())
    blockOf[result] =
        addBlock(*bytesAtLimits(result, sizes, limits), index, lastUse(result));
  return success();
}

LogicalResult Planner::run() {
  launches = llvm::to_vector(step.getBody().front().getOps<llm::LaunchOp>());
  for (auto [index, launch] : llvm::enumerate(launches))
    indexOf[launch] = index;
  for (auto [index, launch] : llvm::enumerate(launches))
    if (failed(addLaunch(index, launch)))
      return failure();
  annotate();
  return success();
}

void Planner::annotate() {
  int64_t arenaBytes = blocks.empty() ? 0 : assignOffsets(blocks);
  for (llm::LaunchOp launch : launches) {
    launch.setOffsets(
        llvm::map_to_vector(launch.getResults(), [&](Value value) {
          return blocks[blockOf.lookup(value)].offset;
        }));
    launch.removeWorkspaceOffsetAttr();
    if (workspaceOf.contains(launch))
      launch.setWorkspaceOffset(blocks[workspaceOf.lookup(launch)].offset);
  }

  int64_t peak = peakBytes(blocks);
  for (auto [block, bytes] : llvm::zip_equal(blocks, exactBytes))
    block.size = bytes;
  Builder builder(step.getContext());
  std::pair<StringRef, int64_t> attributes[] = {
      {plan_attr::arenaBytes, arenaBytes},
      {plan_attr::arenaPeak, peak},
      {plan_attr::arenaLowerBound, peakBytes(blocks)},
      {plan_attr::arenaAlignment, alignment},
      {plan_attr::maxNumTokens, limits.maxNumTokens},
      {plan_attr::maxBatchSize, limits.maxBatchSize}};
  for (auto [name, value] : attributes)
    step->setAttr(name, builder.getI64IntegerAttr(value));
}

namespace {
struct PlanMemoryPass : llmc::impl::LlmPlanMemoryBase<PlanMemoryPass> {
  using LlmPlanMemoryBase::LlmPlanMemoryBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> step = findPagedStep(getOperation());
    if (failed(step) || failed(checkOptions(*step)))
      return signalPassFailure();
    Planner planner(*step, {maxNumTokens, maxBatchSize}, alignment);
    if (failed(planner.run()))
      signalPassFailure();
  }

  LogicalResult checkOptions(Operation *step) {
    if (maxNumTokens < 1 || maxBatchSize < 1)
      return step->emitError()
             << "expected max-num-tokens and max-batch-size of 1 or more, got "
             << int64_t(maxNumTokens) << " and " << int64_t(maxBatchSize);
    if (alignment < 1 || !llvm::isPowerOf2_64(alignment))
      return step->emitError()
             << "expected an alignment that is a power of two, got "
             << int64_t(alignment);
    return success();
  }
};
} // namespace
