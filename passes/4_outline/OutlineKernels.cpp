//===- OutlineKernels.cpp - turns groups into kernels and launches --------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/llm/LlmDialect.h"
#include "passes/4_outline/Passes.h"
#include "passes/4_outline/StepFunction.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace llmc {
#define GEN_PASS_DEF_LLMOUTLINEKERNELS
#include "passes/4_outline/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

// The kernels made so far, looked up by their meaning.
class KernelLibrary {
public:
  KernelLibrary(ModuleOp module, Operation *before)
      : symbols(module), before(before) {}

  // The kernel that does what `group` does, whose arguments stand for
  // `operands`.
  llm::KernelOp kernelFor(llm::GroupOp group, ValueRange operands);

private:
  SymbolTable symbols;
  Operation *before;
  llvm::StringMap<SmallVector<llm::KernelOp>> byAnchor;
};

} // namespace

static llm::KernelOp createKernel(llm::GroupOp group, ValueRange operands,
                                  StringRef name) {
  OpBuilder builder(group.getContext());
  auto type =
      builder.getFunctionType(operands.getTypes(), group.getResultTypes());
  auto kernel = llm::KernelOp::create(builder, group.getLoc(), name, type,
                                      group.getAnchor());
  Block &body = kernel.getBody().front();
  IRMapping mapping;
  for (auto [operand, argument] :
       llvm::zip_equal(operands, body.getArguments())) {
    mapping.map(operand, argument);
    argument.setLoc(operand.getLoc());
  }
  builder.setInsertionPointToEnd(&body);
  for (Operation &op : group.getBody().front())
    builder.clone(op, mapping);
  return kernel;
}

static bool isEqual(llm::KernelOp a, llm::KernelOp b) {
  return a.getFunctionType() == b.getFunctionType() &&
         OperationEquivalence::isRegionEquivalentTo(
             &a.getBody(), &b.getBody(), OperationEquivalence::IgnoreLocations);
}

llm::KernelOp KernelLibrary::kernelFor(llm::GroupOp group,
                                       ValueRange operands) {
  SmallVector<llm::KernelOp> &known = byAnchor[group.getAnchor()];
  std::string name = (group.getAnchor() + "_" + Twine(known.size())).str();
  llm::KernelOp kernel = createKernel(group, operands, name);
  for (llm::KernelOp other : known)
    if (isEqual(kernel, other)) {
      kernel.erase();
      return other;
    }
  symbols.insert(kernel, Block::iterator(before));
  known.push_back(kernel);
  return kernel;
}

// Weights and cache layers stay in @step and are passed to the kernels;
// constants belong into the groups that use them.
static LogicalResult checkCaptures(llm::GroupOp group, ValueRange captures) {
  for (Value capture : captures) {
    Operation *op = capture.getDefiningOp();
    if (!op || isa<llm::WeightOp, llm::KvLayerOp, llm::LaunchOp>(op))
      continue;
    InFlightDiagnostic diag =
        group.emitError()
        << "expected the group to use only arguments, weights, "
           "cache layers and results of other groups, but it "
           "uses a result of '"
        << op->getName() << "'";
    diag.attachNote(op->getLoc()) << "defined here";
    return diag;
  }
  return success();
}

static LogicalResult checkStep(func::FuncOp step) {
  for (Operation &op : step.getBody().front().without_terminator())
    if (!isa<llm::WeightOp, llm::KvLayerOp, llm::GroupOp>(op))
      return op.emitError() << "'" << op.getName()
                            << "' is in no group; run llm-form-kernels first";
  return success();
}

namespace {
struct OutlineKernelsPass
    : llmc::impl::LlmOutlineKernelsBase<OutlineKernelsPass> {
  using LlmOutlineKernelsBase::LlmOutlineKernelsBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> step = findPagedStep(getOperation());
    if (failed(step) || failed(checkStep(*step)))
      return signalPassFailure();
    KernelLibrary library(getOperation(), *step);
    for (auto group : llvm::make_early_inc_range(
             step->getBody().front().getOps<llm::GroupOp>())) {
      llvm::SetVector<Value> captures;
      getUsedValuesDefinedAbove(group.getBody(), captures);
      if (failed(checkCaptures(group, captures.getArrayRef())))
        return signalPassFailure();
      llm::KernelOp kernel = library.kernelFor(group, captures.getArrayRef());
      OpBuilder builder(group);
      auto launch = llm::LaunchOp::create(
          builder, group.getLoc(), group.getResultTypes(), kernel.getSymName(),
          captures.getArrayRef(), /*offsets=*/nullptr,
          /*workspace_offset=*/nullptr, /*tied=*/nullptr);
      group.replaceAllUsesWith(launch.getResults());
      group.erase();
    }
  }
};
} // namespace
