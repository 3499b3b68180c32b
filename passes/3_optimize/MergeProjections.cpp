//===- MergeProjections.cpp - one GEMM for projections of one input -------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/3_optimize/Passes.h"

#include "passes/3_optimize/MergedParameter.h"
#include "passes/3_optimize/Quantization.h"
#include "passes/Parameters.h"

#include "llvm/ADT/MapVector.h"

namespace llmc {
#define GEN_PASS_DEF_LLMMERGEPROJECTIONS
#include "passes/3_optimize/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

// What a projection is for, in the order in which they are packed.
enum class Role { Query, Key, Value, Mixed };

// The role of a value that becomes queries, keys or values and nothing else:
// every path from it goes through views, norms and ropes to an attention or an
// append.
std::optional<Role> roleOf(Value value) {
  std::optional<Role> role;
  for (OpOperand &use : value.getUses()) {
    Operation *op = use.getOwner();
    unsigned index = use.getOperandNumber();
    std::optional<Role> found;
    if (isa<llm::AttentionOp>(op) && index < 3)
      found = Role(index);
    else if (isa<llm::PagedAttentionOp>(op))
      found = Role::Query;
    else if (isa<llm::KvAppendOp>(op))
      found = index == 0 ? Role::Key : Role::Value;
    else if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                 tensor::ExtractSliceOp, llm::TransposeOp, llm::RmsNormOp,
                 llm::LayerNormOp, llm::RopeOp>(op) &&
             index == 0)
      found = roleOf(op->getResult(0));
    if (!found)
      return std::nullopt;
    role = role && role != found ? Role::Mixed : found;
  }
  return role;
}

Value mergedLinear(ArrayRef<llm::LinearOp> linears, const MergeRecipe &recipe,
                   SymbolTable &symbols, OpBuilder &builder) {
  SmallVector<Value> weights, biases;
  int64_t features = 0;
  for (llm::LinearOp linear : linears) {
    weights.push_back(linear.getWeight());
    features += linear.getType().getDimSize(1);
    if (linear.getBias())
      biases.push_back(linear.getBias());
  }
  llm::LinearOp first = linears.front();
  Location loc = first.getLoc();
  Value weight = mergeWeights(weights, recipe, symbols, builder);
  Value bias =
      biases.empty() ? Value() : mergeWeights(biases, recipe, symbols, builder);
  auto type = RankedTensorType::get({first.getType().getDimSize(0), features},
                                    first.getType().getElementType());
  auto merged =
      llm::LinearOp::create(builder, loc, type, first.getInput(), weight, bias);
  setQuantization(merged, quantizationOf(first));
  return merged;
}

bool canMerge(llm::LinearOp linear) {
  return isMergeableWeight(linear.getWeight()) &&
         (!linear.getBias() || isMergeableWeight(linear.getBias()));
}

// Linears that may become one: equal in everything but their number of
// features.
bool haveOneForm(llm::LinearOp a, llm::LinearOp b) {
  return a.getInput() == b.getInput() && !a.getBias() == !b.getBias() &&
         a.getType().getElementType() == b.getType().getElementType() &&
         getElementTypeOrSelf(a.getWeight()) ==
             getElementTypeOrSelf(b.getWeight()) &&
         quantizationOf(a) == quantizationOf(b);
}

struct MergeProjectionsPass
    : llmc::impl::LlmMergeProjectionsBase<MergeProjectionsPass> {
  using LlmMergeProjectionsBase::LlmMergeProjectionsBase;

  void runOnOperation() override {
    if (gluBlock < 1) {
      getOperation().emitError()
          << "expected glu-block to be 1 or more, found " << int64_t(gluBlock)
          << "; it is the number of gate columns that lie side by side";
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      mergeAttention(func, symbols);
      SmallVector<llm::GluOp> glus;
      func.walk([&](llm::GluOp glu) { glus.push_back(glu); });
      for (llm::GluOp glu : glus)
        if (!mergeGlu(glu, symbols))
          mergePackedGlu(glu, symbols);
    }
    eraseUnusedParameters(getOperation());
  }

  // Queries, keys and values of one input: concatenated, then sliced.
  void mergeAttention(func::FuncOp func, SymbolTable &symbols) {
    using Projection = std::pair<Role, llm::LinearOp>;
    llvm::MapVector<Value, SmallVector<Projection>> byInput;
    func.walk([&](llm::LinearOp linear) {
      if (std::optional<Role> role = roleOf(linear); role && canMerge(linear))
        byInput[linear.getInput()].push_back({*role, linear});
    });
    for (auto &[input, projections] : byInput) {
      llvm::stable_sort(projections, llvm::less_first());
      SmallVector<llm::LinearOp> linears;
      for (auto [role, linear] : projections)
        if (linears.empty() || haveOneForm(linears.front(), linear))
          linears.push_back(linear);
      if (linears.size() > 1)
        replaceWithSlices(linears, symbols);
    }
  }

  void replaceWithSlices(ArrayRef<llm::LinearOp> linears,
                         SymbolTable &symbols) {
    llm::LinearOp first = linears.front();
    for (llm::LinearOp linear : linears)
      if (linear->isBeforeInBlock(first))
        first = linear;
    OpBuilder builder(first);
    Location loc = first.getLoc();
    Value merged =
        mergedLinear(linears, MergeRecipe::concat(), symbols, builder);
    OpFoldResult rows = tensor::getMixedSize(builder, loc, merged, 0);
    int64_t offset = 0;
    for (llm::LinearOp linear : linears) {
      int64_t features = linear.getType().getDimSize(1);
      OpFoldResult zero = builder.getIndexAttr(0),
                   one = builder.getIndexAttr(1);
      Value part = tensor::ExtractSliceOp::create(
          builder, linear.getLoc(), linear.getType(), merged,
          {zero, builder.getIndexAttr(offset)},
          {rows, builder.getIndexAttr(features)}, {one, one});
      linear.replaceAllUsesWith(part);
      offset += features;
    }
    for (llm::LinearOp linear : linears)
      linear.erase();
  }

  // glu(linear, linear) of one input: rows of the weights interleaved.
  bool mergeGlu(llm::GluOp glu, SymbolTable &symbols) {
    auto gate = glu.getGate().getDefiningOp<llm::LinearOp>();
    auto up = glu.getUp().getDefiningOp<llm::LinearOp>();
    if (!gate || !up || gate == up || !gate->hasOneUse() || !up->hasOneUse() ||
        !canMerge(gate) || !canMerge(up) || !haveOneForm(gate, up) ||
        gate.getType().getDimSize(1) % gluBlock)
      return false;
    OpBuilder builder(glu);
    Value merged = mergedLinear({gate, up}, MergeRecipe::interleave(gluBlock),
                                symbols, builder);
    replaceWithPacked(glu, merged, builder);
    gate.erase();
    up.erase();
    return true;
  }

  // glu of the two halves of a linear, for checkpoints that store gate and up
  // as one matrix: its rows are interleaved.
  bool mergePackedGlu(llm::GluOp glu, SymbolTable &symbols) {
    auto gate = glu.getGate().getDefiningOp<tensor::ExtractSliceOp>();
    auto up = glu.getUp().getDefiningOp<tensor::ExtractSliceOp>();
    if (!gate || !up || gate.getSource() != up.getSource())
      return false;
    auto linear = gate.getSource().getDefiningOp<llm::LinearOp>();
    int64_t factor = glu.getType().getShape().back();
    if (!linear || !canMerge(linear) || factor % gluBlock ||
        linear.getType().getDimSize(1) != 2 * factor ||
        llvm::any_of(linear->getUsers(), [&](Operation *user) {
          return user != gate && user != up && !isa<tensor::DimOp>(user);
        }))
      return false;
    auto isHalf = [&](tensor::ExtractSliceOp slice, int64_t begin) {
      return slice.hasUnitStride() &&
             slice.getStaticOffsets() == ArrayRef<int64_t>{0, begin} &&
             slice.getStaticSizes().back() == factor;
    };
    bool gateFirst = isHalf(gate, 0) && isHalf(up, factor);
    if (!gateFirst && !(isHalf(gate, factor) && isHalf(up, 0)))
      return false;
    OpBuilder builder(linear);
    Value merged = mergedLinear(
        {linear}, MergeRecipe::interleaveHalves(gluBlock, factor, gateFirst),
        symbols, builder);
    linear.replaceAllUsesWith(merged);
    linear.erase();
    builder.setInsertionPoint(glu);
    replaceWithPacked(glu, merged, builder);
    for (tensor::ExtractSliceOp slice : {gate, up})
      if (slice.use_empty())
        slice.erase();
    return true;
  }

  void replaceWithPacked(llm::GluOp glu, Value merged, OpBuilder &builder) {
    Value packed = llm::PackedGluOp::create(
        builder, glu.getLoc(), glu.getType(), glu.getKind(),
        llm::GluLayout::Interleaved, merged, gluBlock);
    glu.replaceAllUsesWith(packed);
    glu.erase();
  }
};

} // namespace
