//===- FormKernels.cpp - groups ops into future kernels -------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// First every op is assigned to a group: what happens between a projection and
// the KV cache is claimed backwards from the cache, everything else joins, in
// program order, the group that computed its youngest operand. Then the groups
// are built.
//
//===----------------------------------------------------------------------===//

#include "passes/4_outline/GroupBuilder.h"
#include "passes/4_outline/KernelKinds.h"
#include "passes/4_outline/Passes.h"
#include "passes/4_outline/StepFunction.h"
#include "passes/Describe.h"

#include "dialects/llm/LlmDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace llmc {
#define GEN_PASS_DEF_LLMFORMKERNELS
#include "passes/4_outline/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

// The step as a partition into groups, while it is being found.
class Grouping {
public:
  explicit Grouping(func::FuncOp step) : block(step.getBody().front()) {}

  LogicalResult run();

  KernelGroups take() { return std::move(groups); }

private:
  // Ops that depend on weights, constants and sizes only: each kernel that uses
  // one gets a copy.
  void findUniform();
  LogicalResult checkSupported();
  void claimRopeAppends();
  void claim(Value value, KernelGroup *group);
  void assign(Operation *op);
  bool joinQuantization(Operation *op);
  void mergeSumsIntoNorms();

  bool isUniform(Value value) const {
    Operation *op = value.getDefiningOp();
    return op && uniform.contains(op);
  }
  bool isWeight(Value value) const {
    return value.getDefiningOp<llm::WeightOp>() != nullptr;
  }
  bool isActivation(Value value) const {
    return isa<RankedTensorType>(value.getType()) && !isUniform(value) &&
           !isWeight(value);
  }
  bool endsLinear(Value value) const;
  EpilogueOp classify(Operation *op, Value tail) const;
  KernelGroup *youngestProducer(Operation *op);
  bool join(KernelGroup *group, Operation *op);

  Block &block;
  KernelGroups groups;
  llvm::DenseSet<Operation *> uniform;
};

} // namespace

LogicalResult Grouping::run() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  findUniform();
  claimRopeAppends();
  if (failed(checkSupported()))
    return failure();
  for (Operation &op : block.without_terminator())
    if (!groups.groupOf(&op) && !groups.copied.contains(&op) &&
        !isa<llm::WeightOp, llm::KvLayerOp>(op))
      assign(&op);
  mergeSumsIntoNorms();
  return success();
}

// Ops that a kernel may repeat: they cost nothing beside what it does anyway.
static bool isCheap(Operation *op) {
  return op->hasTrait<OpTrait::ConstantLike>() ||
         op->hasTrait<OpTrait::Elementwise>() || isViewOp(op) ||
         isa<tensor::DimOp, tensor::EmptyOp, llm::BroadcastOp>(op);
}

void Grouping::findUniform() {
  for (Operation &op : block.without_terminator())
    if (isCheap(&op) && (isa<tensor::DimOp>(op) ||
                         llvm::all_of(op.getOperands(), [&](Value operand) {
                           return isWeight(operand) || isUniform(operand);
                         })))
      uniform.insert(&op);
  groups.copied = uniform;
}

// True when one op reads the elements of `value`. Its sizes are read elsewhere:
// rootDims sees to that.
static bool hasOneReader(Value value) {
  auto readers = llvm::make_filter_range(value.getUsers(), [](Operation *user) {
    return !isa<tensor::DimOp>(user);
  });
  return !readers.empty() && llvm::all_equal(readers);
}

// Everything a kernel kind can hold; the rest of the dialects must be gone by
// now.
LogicalResult Grouping::checkSupported() {
  for (Operation &op : block.without_terminator()) {
    if (groups.groupOf(&op) || groups.copied.contains(&op) ||
        startedKind(&op) || isViewOp(&op) || isCastOp(&op) ||
        isElementwiseOp(&op) || isQuantizeOp(&op) ||
        isa<llm::WeightOp, llm::KvLayerOp, llm::GatherRowsOp, llm::PackedGluOp,
            llm::BroadcastOp, llm::RmsNormOp, llm::LayerNormOp>(op))
      continue;
    return op.emitError() << "expected only ops that a kernel kind can hold "
                             "(docs/architecture.md, section 1.3), found '"
                          << op.getName() << "' in " << describe(op.getLoc())
                          << "; raise it to an llm op or give it a kernel kind";
  }
  return success();
}

// True for the end of a chain that the epilogue of a linear will hold.
bool Grouping::endsLinear(Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op || !hasOneReader(value))
    return false;
  if (isa<llm::LinearOp, llm::ScaledLinearOp>(op))
    return true;
  return isElementwiseOp(op) &&
         llvm::any_of(op->getOperands(),
                      [&](Value operand) { return endsLinear(operand); });
}

// Walks backwards from an input of the cache or of attention to the
// projections.
void Grouping::claim(Value value, KernelGroup *group) {
  Operation *op = value.getDefiningOp();
  if (!op || groups.groupOf(op) || groups.copied.contains(op) ||
      startedKind(op))
    return;
  bool isHeadNorm = isa<llm::RmsNormOp, llm::LayerNormOp>(op);
  bool isMath = isCastOp(op) || isElementwiseOp(op);
  if (!isViewOp(op) && !isMath && !isHeadNorm && !isa<llm::RopeOp>(op))
    return;
  // Biases, clamps and the like of an unsplit projection are its epilogue.
  if (isMath && endsLinear(value))
    return;
  groups.add(group, op);
  for (Value operand : op->getOperands())
    claim(operand, group);
}

void Grouping::claimRopeAppends() {
  for (Operation &op : block.without_terminator()) {
    if (auto append = dyn_cast<llm::KvAppendOp>(op)) {
      KernelGroup *group = groups.create(KernelKind::RopeAppend, append);
      claim(append.getKey(), group);
      claim(append.getValue(), group);
      continue;
    }
    auto attention = dyn_cast<llm::PagedAttentionOp>(op);
    if (!attention)
      continue;
    // The query is rotated where the keys of the same layer are stored. A layer
    // that reads the cache of another one rotates its query alone.
    KernelGroup *group = nullptr;
    for (KernelGroup &other : groups.all)
      if (auto append = dyn_cast<llm::KvAppendOp>(other.ops.front()))
        if (append.getKv() == attention.getKv() && !other.attention)
          group = &other;
    if (group)
      group->attention = attention;
    else if (Operation *def = attention.getQuery().getDefiningOp())
      if (isa<llm::RopeOp>(def) && !groups.groupOf(def))
        group = groups.create(KernelKind::RopeAppend);
    if (group)
      claim(attention.getQuery(), group);
  }
}

// What `op` is to a kernel whose last value is `tail`.
EpilogueOp Grouping::classify(Operation *op, Value tail) const {
  if (isViewOp(op))
    return EpilogueOp::View;
  if (isCastOp(op))
    return EpilogueOp::Cast;
  if (isa<llm::PackedGluOp>(op))
    return EpilogueOp::PackedGlu;
  bool single = llvm::all_of(op->getOperands(), [&](Value operand) {
    return operand == tail || !isActivation(operand);
  });
  if (isElementwiseOp(op) && single)
    return EpilogueOp::Unary;
  if (isa<arith::AddFOp>(op) && op->getOperand(0) != op->getOperand(1))
    return EpilogueOp::Residual;
  return EpilogueOp::Other;
}

// The group of the operand that becomes available last. Joining any other group
// would delay that group until this operand is there.
KernelGroup *Grouping::youngestProducer(Operation *op) {
  KernelGroup *youngest = nullptr;
  for (Value operand : op->getOperands()) {
    KernelGroup *group = groups.producer(operand);
    if (group &&
        (!youngest || youngest->lastOp()->isBeforeInBlock(group->lastOp())))
      youngest = group;
  }
  return youngest;
}

bool Grouping::join(KernelGroup *group, Operation *op) {
  Value tail = group->tail;
  bool isEpilogue = isViewOp(op) || isCastOp(op) || isElementwiseOp(op) ||
                    isa<llm::PackedGluOp, llm::BroadcastOp>(op);
  if (!isEpilogue || !tail || !llvm::is_contained(op->getOperands(), tail))
    return false;
  // A value that others read too stays a result of the kernel; only a
  // conversion of it may be a second one.
  bool onlyUser = hasOneReader(tail);
  if (!onlyUser && !isCastOp(op))
    return false;
  std::optional<EpilogueStage> stage =
      joinEpilogue(group->kind, group->stage, classify(op, tail));
  if (!stage)
    return false;
  groups.add(group, op);
  group->stage = *stage;
  if (onlyUser)
    group->tail = op->getResult(0);
  return true;
}

// Codes and scales are made where the rows are whole: by the kernel of a norm
// or of elementwise ops, as further results beside rows that others read too. A
// linear has a row in pieces, and attention has it head by head.
bool Grouping::joinQuantization(Operation *op) {
  KernelGroup *group = groups.producer(op->getOperand(0));
  if (auto quantize = dyn_cast<llm::QuantizeOp>(op))
    if (KernelGroup *scale = groups.producer(quantize.getScale()))
      group = scale;
  if (!group || (group->kind != KernelKind::Norm &&
                 group->kind != KernelKind::Elementwise))
    return false;
  groups.add(group, op);
  return true;
}

void Grouping::assign(Operation *op) {
  if (std::optional<KernelKind> kind = startedKind(op)) {
    KernelGroup *group = groups.create(*kind, op);
    // The last norm reads the rows that need logits only.
    if (*kind == KernelKind::Norm) {
      auto gather = op->getOperand(0).getDefiningOp<llm::GatherRowsOp>();
      if (gather && hasOneReader(gather))
        groups.move(gather, group);
    }
    if (op->getNumResults() == 1)
      group->tail = op->getResult(0);
    return;
  }
  if (isQuantizeOp(op) && joinQuantization(op))
    return;
  KernelGroup *producer = youngestProducer(op);
  if (producer && join(producer, op))
    return;
  if (isViewOp(op) &&
      !llvm::is_contained(op->getUsers(), block.getTerminator())) {
    groups.copied.insert(op);
    return;
  }
  bool isHeadNorm = isa<llm::RmsNormOp, llm::LayerNormOp>(op);
  KernelGroup *group = groups.create(
      isHeadNorm ? KernelKind::Norm : KernelKind::Elementwise, op);
  group->tail = op->getResult(0);
}

// A sum that found no epilogue (behind a collective, for example) is computed
// by the norm that reads it; the kernel then has both results.
void Grouping::mergeSumsIntoNorms() {
  for (KernelGroup &norm : groups.all) {
    if (norm.kind != KernelKind::Norm || norm.stage == EpilogueStage::Residual)
      continue;
    auto sum = norm.ops.front()->getOperand(0).getDefiningOp<arith::AddFOp>();
    KernelGroup *group = sum ? groups.groupOf(sum) : nullptr;
    if (!group || group->kind != KernelKind::Elementwise ||
        group->ops.size() != 1)
      continue;
    groups.move(sum, &norm);
  }
}

namespace {
struct FormKernelsPass : llmc::impl::LlmFormKernelsBase<FormKernelsPass> {
  using LlmFormKernelsBase::LlmFormKernelsBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> step = findPagedStep(getOperation());
    if (failed(step))
      return signalPassFailure();
    Grouping grouping(*step);
    if (failed(grouping.run()) || failed(buildGroups(*step, grouping.take())))
      signalPassFailure();
  }
};
} // namespace
