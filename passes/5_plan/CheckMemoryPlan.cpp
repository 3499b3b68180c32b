//===- CheckMemoryPlan.cpp - proves that a memory plan is sound -----------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Executes the launches in order and keeps the set of values that are still to
// be read. The planner thinks in lifetimes and blocks; this thinks in reads
// that remain, so that one mistake does not hide in both.
//
//===----------------------------------------------------------------------===//

#include "passes/4_outline/KernelKinds.h"
#include "passes/4_outline/StepFunction.h"
#include "passes/5_plan/MemoryPlan.h"
#include "passes/5_plan/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

namespace llmc {
#define GEN_PASS_DEF_LLMCHECKMEMORYPLAN
#include "passes/5_plan/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

// A range of the arena and what it holds.
struct ArenaRange {
  std::string name;
  int64_t begin = 0;
  int64_t end = 0;

  std::string text() const {
    return llvm::formatv("{0} at [{1}, {2})", name, begin, end);
  }
};

class Checker {
public:
  Checker(func::FuncOp step, StepLimits limits, int64_t arenaBytes,
          int64_t alignment)
      : step(step), limits(limits), arenaBytes(arenaBytes),
        alignment(alignment), sizes(step) {}

  LogicalResult run();

private:
  LogicalResult checkLaunch(llm::LaunchOp launch);
  FailureOr<SmallVector<ArenaRange>> written(llm::LaunchOp launch);
  LogicalResult checkTie(llm::LaunchOp launch, unsigned result,
                         unsigned operand);
  LogicalResult checkInArena(llm::LaunchOp launch, const ArenaRange &range);

  func::FuncOp step;
  StepLimits limits;
  int64_t arenaBytes;
  int64_t alignment;
  StepSizes sizes;
  int64_t launchNumber = 0;
  // Values in the arena that some launch to come, or the return, reads.
  llvm::MapVector<Value, ArenaRange> live;
  llvm::DenseMap<Value, int64_t> readsLeft;
};

} // namespace

// Collects the uses of `argument` that `value`, computed in a kernel, depends
// on; fails when anything but an elementwise op stands between them.
static bool readsInPlace(Value value, BlockArgument argument,
                         llvm::SmallPtrSetImpl<OpOperand *> &reads) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return true;
  llvm::SmallPtrSet<OpOperand *, 4> below;
  for (OpOperand &use : op->getOpOperands()) {
    if (use.get() == argument)
      below.insert(&use);
    else if (!readsInPlace(use.get(), argument, below))
      return false;
  }
  reads.insert(below.begin(), below.end());
  return below.empty() || isElementwiseOp(op);
}

LogicalResult Checker::checkTie(llm::LaunchOp launch, unsigned result,
                                unsigned operand) {
  Value source = launch.getOperands()[operand];
  auto held = live.find(source);
  if (held == live.end())
    return launch.emitError() << "ties result #" << result << " to operand #"
                              << operand << ", which is not in the arena";
  if (readsLeft.lookup(source) > 0)
    return launch.emitError()
           << "ties result #" << result << " to " << held->second.text()
           << ", which is read again after this launch";
  if (llvm::count(launch.getOperands(), source) > 1)
    return launch.emitError()
           << "ties result #" << result << " to " << held->second.text()
           << ", which is also another operand of this launch";
  llm::KernelOp kernel = kernelOf(launch);
  Block &body = kernel.getBody().front();
  BlockArgument argument = body.getArgument(operand);
  llvm::SmallPtrSet<OpOperand *, 4> reads;
  if (launch.getNumResults() != 1 ||
      !readsInPlace(body.getTerminator()->getOperand(result), argument,
                    reads) ||
      reads.empty() || reads.size() != argument.getNumUses())
    return launch.emitError()
           << "ties result #" << result << " to operand #" << operand
           << ", but @" << kernel.getSymName()
           << " does not compute it from that operand element by element";
  int64_t offset = (*launch.getOffsets())[result];
  if (offset != held->second.begin)
    return launch.emitError() << "ties result #" << result << " at offset "
                              << offset << " to " << held->second.text();
  return success();
}

LogicalResult Checker::checkInArena(llm::LaunchOp launch,
                                    const ArenaRange &range) {
  if (range.begin % alignment)
    return launch.emitError()
           << range.text() << " is not aligned to " << alignment << " bytes";
  if (range.begin < 0 || range.end > arenaBytes)
    return launch.emitError() << range.text() << " is outside the arena of "
                              << arenaBytes << " bytes";
  return success();
}

// The ranges that `launch` writes: its results in order, then its workspace.
FailureOr<SmallVector<ArenaRange>> Checker::written(llm::LaunchOp launch) {
  std::string suffix =
      llvm::formatv(" of @{0} (launch {1})", launch.getKernel(), launchNumber);
  if (!launch.getOffsets())
    return launch.emitError() << "launch " << launchNumber << " of @"
                              << launch.getKernel() << " has no offsets";
  SmallVector<ArenaRange> ranges;
  for (OpResult result : launch->getResults()) {
    FailureOr<int64_t> bytes = bytesAtLimits(result, sizes, limits);
    if (failed(bytes))
      return failure();
    int64_t offset = (*launch.getOffsets())[result.getResultNumber()];
    std::string name = "result #" + std::to_string(result.getResultNumber());
    ranges.push_back({name + suffix, offset, offset + *bytes});
  }
  int64_t workspace = kernelOf(launch).getWorkspace().value_or(0);
  std::optional<int64_t> offset;
  if (IntegerAttr attr = launch.getWorkspaceOffsetAttr())
    offset = attr.getInt();
  if (offset.has_value() != (workspace > 0))
    return launch.emitError()
           << "@" << launch.getKernel() << " needs " << workspace
           << " bytes of workspace, but launch " << launchNumber
           << (offset ? " has a workspace_offset" : " has no workspace_offset");
  if (offset)
    ranges.push_back({"workspace" + suffix, *offset, *offset + workspace});
  return ranges;
}

LogicalResult Checker::checkLaunch(llm::LaunchOp launch) {
  FailureOr<SmallVector<ArenaRange>> ranges = written(launch);
  if (failed(ranges))
    return failure();
  for (Value operand : launch.getOperands())
    --readsLeft[operand];

  for (unsigned result = 0; result < launch.getNumResults(); ++result) {
    std::optional<unsigned> operand = tiedOperand(launch, result);
    if (operand && failed(checkTie(launch, result, *operand)))
      return failure();
  }

  for (auto [number, range] : llvm::enumerate(*ranges)) {
    if (failed(checkInArena(launch, range)))
      return failure();
    auto collides = [&](const ArenaRange &other) {
      return range.begin < other.end && other.begin < range.end;
    };
    std::optional<unsigned> operand = number < launch.getNumResults()
                                          ? tiedOperand(launch, number)
                                          : std::nullopt;
    for (auto &[value, other] : live)
      if (collides(other) &&
          !(operand && value == launch.getOperands()[*operand]))
        return launch.emitError()
               << range.text() << " overlaps " << other.text()
               << ", which is live at launch " << launchNumber;
    for (const ArenaRange &other : ArrayRef(*ranges).take_front(number))
      if (collides(other))
        return launch.emitError()
               << range.text() << " overlaps " << other.text()
               << ", both written by launch " << launchNumber;
  }

  live.remove_if(
      [&](auto &entry) { return readsLeft.lookup(entry.first) <= 0; });
  for (auto [result, range] : llvm::zip(launch.getResults(), *ranges)) {
    readsLeft[result] = result.getNumUses();
    if (readsLeft[result])
      live.insert({result, range});
  }
  ++launchNumber;
  return success();
}

LogicalResult Checker::run() {
  for (llm::LaunchOp launch : step.getBody().front().getOps<llm::LaunchOp>())
    if (failed(checkLaunch(launch)))
      return failure();
  return success();
}

namespace {
struct CheckMemoryPlanPass
    : llmc::impl::LlmCheckMemoryPlanBase<CheckMemoryPlanPass> {
  using LlmCheckMemoryPlanBase::LlmCheckMemoryPlanBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> step = findPagedStep(getOperation());
    if (failed(step))
      return signalPassFailure();
    FailureOr<StepLimits> limits = readLimits(*step);
    FailureOr<int64_t> bytes = readPlanAttr(*step, plan_attr::arenaBytes);
    FailureOr<int64_t> alignment =
        readPlanAttr(*step, plan_attr::arenaAlignment);
    if (failed(limits) || failed(bytes) || failed(alignment))
      return signalPassFailure();
    Checker checker(*step, *limits, *bytes, *alignment);
    if (failed(checker.run()))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
