//===- AssignQuantization.cpp - which linears are quantized ---------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/3_optimize/Passes.h"

#include "passes/3_optimize/Quantization.h"

#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

namespace llmc {
#define GEN_PASS_DEF_LLMASSIGNQUANTIZATION
#include "passes/3_optimize/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

// A glob of the option `exclude`, and whether it has named a linear.
struct Exclusion {
  StringRef text;
  llvm::GlobPattern pattern;
  bool used = false;

  bool matches(StringRef parameter) const {
    StringRef module = parameter;
    return pattern.match(parameter) ||
           (module.consume_back(".weight") && pattern.match(module));
  }
};

// The linears whose results become logits by elementwise ops and views alone.
llvm::DenseSet<Operation *> findHeads(func::FuncOp step) {
  llvm::DenseSet<Operation *> heads;
  llvm::SetVector<Value> open;
  open.insert_range(step.getBody().front().getTerminator()->getOperands());
  for (size_t i = 0; i < open.size(); ++i) {
    Operation *op = open[i].getDefiningOp();
    if (!op)
      continue;
    if (isa<llm::LinearOp>(op))
      heads.insert(op);
    else if (op->hasTrait<OpTrait::Elementwise>() ||
             isa<llm::ActivationOp, llm::GatherRowsOp, tensor::CastOp,
                 tensor::ExtractSliceOp, tensor::CollapseShapeOp,
                 tensor::ExpandShapeOp>(op))
      open.insert_range(op->getOperands());
  }
  return heads;
}

struct AssignQuantizationPass
    : llmc::impl::LlmAssignQuantizationBase<AssignQuantizationPass> {
  using LlmAssignQuantizationBase::LlmAssignQuantizationBase;

  void runOnOperation() override {
    if (failed(assign()))
      signalPassFailure();
  }

private:
  LogicalResult assign() {
    auto step = getOperation().lookupSymbol<func::FuncOp>("step");
    if (!step)
      return getOperation().emitError()
             << "expected a function @step, found none; this pass takes the "
                "module of a frontend";
    FailureOr<llm::QuantizationAttr> choice = readOptions();
    FailureOr<SmallVector<Exclusion>> exclusions = readExclusions();
    if (failed(choice) || failed(exclusions))
      return failure();

    llvm::DenseSet<Operation *> heads;
    if (!lmHead)
      heads = findHeads(step);
    SmallVector<StringRef> names;
    bool any = false;
    LogicalResult result = success();
    step.walk([&](llm::LinearOp linear) {
      auto weight = linear.getWeight().getDefiningOp<llm::WeightOp>();
      if (!weight)
        return;
      StringRef name = weight.getName();
      names.push_back(name);
      bool excluded = false;
      for (Exclusion &exclusion : *exclusions)
        if (exclusion.matches(name))
          excluded = exclusion.used = true;
      if (excluded || heads.contains(linear))
        return;
      if (failed(checkGroup(linear, name)))
        result = failure();
      setQuantization(linear, *choice);
      any = true;
    });
    if (failed(result))
      return failure();
    for (const Exclusion &exclusion : *exclusions)
      if (!exclusion.used)
        return getOperation().emitError()
               << "exclude pattern '" << exclusion.text
               << "' names no linear; linears are called '"
               << llvm::join(ArrayRef(names).take_front(4), "', '")
               << (names.size() > 4 ? "', ..." : "'");
    if (!any)
      return getOperation().emitError()
             << "nothing is left to quantize: all " << names.size()
             << " linears are excluded or make the logits";
    return success();
  }

  FailureOr<llm::QuantizationAttr> readOptions() {
    MLIRContext *context = &getContext();
    auto emit = [&] { return getOperation().emitError(); };
    Type weight = parseType(weights, context, nullptr, false);
    Type input = inputs.empty() ? Type() : parseType(inputs, context);
    if (!weight || (!inputs.empty() && !input))
      return emit() << "expected types as weights and inputs, found '"
                    << weights << "' and '" << inputs << "'";
    auto attr = llm::QuantizationAttr::getChecked(emit, context, weight,
                                                  int64_t(group), input,
                                                  bool(zeros));
    if (!attr)
      return failure();
    return attr;
  }

  FailureOr<SmallVector<Exclusion>> readExclusions() {
    SmallVector<Exclusion> exclusions;
    for (const std::string &text : exclude) {
      llvm::Expected<llvm::GlobPattern> pattern =
          llvm::GlobPattern::create(text);
      if (!pattern)
        return getOperation().emitError()
               << "exclude pattern '" << text
               << "': " << llvm::toString(pattern.takeError());
      exclusions.push_back({text, std::move(*pattern)});
    }
    return exclusions;
  }

  LogicalResult checkGroup(llm::LinearOp linear, StringRef name) {
    int64_t columns =
        cast<RankedTensorType>(linear.getWeight().getType()).getDimSize(1);
    if (!group || columns % group == 0)
      return success();
    return linear.emitError()
           << "'" << name << "' has " << columns
           << " in features, which groups of " << int64_t(group)
           << " do not divide; exclude it or choose another format";
  }
};

} // namespace
