//===- AssignPrecision.cpp - element types of weights and activations -----===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The graph arrives in float32. Narrowing a value in place (its producer writes
// the narrow type, its readers take it) costs nothing, so a value is narrowed
// whenever all its readers accept that; only where a GEMM reads a value that
// must stay wide is a cast inserted.
//
//===----------------------------------------------------------------------===//

#include "passes/3_optimize/Passes.h"

#include "dialects/llm/LlmDialect.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSwitch.h"

namespace llmc {
#define GEN_PASS_DEF_LLMASSIGNPRECISION
#include "passes/3_optimize/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

RankedTensorType withElement(Type type, Type element) {
  return cast<RankedTensorType>(type).clone(element);
}

bool isF32Tensor(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getElementType().isF32();
}

// Moves elements without computing on them: operands and result share a type.
bool isMove(Operation *op) {
  return isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
             tensor::ExtractSliceOp, tensor::ConcatOp, tensor::CastOp,
             llm::TransposeOp, llm::GatherRowsOp>(op);
}

// Computes in float32 inside and can round its result on the way out. An
// embedding could too, but it starts the residual stream.
bool canRoundResult(Operation *op) {
  return isa<llm::LinearOp, llm::RmsNormOp, llm::LayerNormOp, llm::RopeOp,
             llm::AttentionOp, llm::PagedAttentionOp, llm::GluOp,
             llm::ActivationOp, llm::MoeMlpOp>(op);
}

// Operands that feed tensor cores: they must have the activation type.
bool isGemmInput(OpOperand &use) {
  Operation *op = use.getOwner();
  return (isa<llm::LinearOp, llm::MoeMlpOp>(op) && use.getOperandNumber() == 0);
}

// Operands whose op takes any float type (or reads no element).
bool acceptsNarrow(OpOperand &use) {
  Operation *op = use.getOwner();
  unsigned index = use.getOperandNumber();
  if (isGemmInput(use) || isa<llm::GluOp, llm::ActivationOp, tensor::DimOp>(op))
    return true;
  if (isa<llm::RmsNormOp, llm::LayerNormOp, llm::RopeOp, llm::PagedAttentionOp>(
          op))
    return index == 0;
  if (isa<llm::KvAppendOp>(op))
    return index < 2;
  return isa<llm::AttentionOp>(op) && index < 3;
}

// Operands that are weights in storage type.
bool isStoredWeight(OpOperand &use) {
  Operation *op = use.getOwner();
  unsigned index = use.getOperandNumber();
  if (isa<llm::LinearOp, llm::EmbeddingOp, llm::RmsNormOp, llm::LayerNormOp>(
          op))
    return index > 0;
  return isa<llm::MoeMlpOp>(op) && index > 2;
}

// An offset such as Gemma's 1 + w loses the low bits of w when it is rounded:
// with eight bits of precision around 1, most of what the norm has learned.
bool hasOffset(Attribute recipe) {
  bool found = false;
  AttrTypeWalker walker;
  walker.addWalk([&](llm::OffsetAttr) { found = true; });
  if (recipe)
    walker.walk(recipe);
  return found;
}

struct AssignPrecisionPass
    : llmc::impl::LlmAssignPrecisionBase<AssignPrecisionPass> {
  using LlmAssignPrecisionBase::LlmAssignPrecisionBase;

  void runOnOperation() override {
    Type weightType, activationType, cacheType;
    if (failed(parse("weights", weights, weightType)) ||
        failed(parse("activations", activations, activationType)) ||
        failed(parse("kv", kv, cacheType)))
      return signalPassFailure();
    auto step = getOperation().lookupSymbol<func::FuncOp>("step");
    if (!step) {
      getOperation().emitError() << "expected a function @step, found none; "
                                    "this pass takes the module "
                                    "of a frontend";
      return signalPassFailure();
    }
    storeWeights(step, weightType);
    storeCache(step, cacheType);
    if (!activationType.isF32())
      narrowActivations(step, activationType);
  }

  LogicalResult parse(StringRef option, StringRef name, Type &type) {
    MLIRContext *context = &getContext();
    type = llvm::StringSwitch<Type>(name)
               .Case("f32", Float32Type::get(context))
               .Case("bf16", BFloat16Type::get(context))
               .Case("f16", Float16Type::get(context))
               .Default({});
    if (type)
      return success();
    return getOperation().emitError()
           << "expected " << option << " to be f32, bf16 or f16, found '"
           << name << "'; narrower types come with scales, from quantization";
  }

  // Weights: the parameter, and every read of it.
  void storeWeights(func::FuncOp step, Type type) {
    llvm::MapVector<StringAttr, SmallVector<llm::WeightOp>> reads;
    step.walk([&](llm::WeightOp read) {
      reads[read.getNameAttr().getAttr()].push_back(read);
    });
    SymbolTable symbols(getOperation());
    for (auto &[name, ops] : reads) {
      auto parameter = symbols.lookup<llm::ParameterOp>(name);
      bool stored = llvm::all_of(ops, [](llm::WeightOp read) {
        return llvm::all_of(read->getUses(), isStoredWeight);
      });
      if (!stored || !parameter.getTensorType().getElementType().isF32() ||
          parameter.getValue() || hasOffset(parameter.getRecipeAttr()))
        continue;
      parameter.setType(withElement(parameter.getType(), type));
      for (llm::WeightOp read : ops)
        read.getResult().setType(withElement(read.getType(), type));
    }
  }

  // The cache: @step's argument, and each layer taken from it.
  void storeCache(func::FuncOp step, Type type) {
    for (BlockArgument argument : step.getArguments()) {
      auto cache = dyn_cast<llm::KvCacheType>(argument.getType());
      if (!cache)
        continue;
      SmallVector<llm::KvType> layers;
      for (llm::KvType layer : cache.getLayers())
        layers.push_back(llm::KvType::get(
            &getContext(), layer.getHeads(), layer.getHeadDim(),
            layer.getVHeadDim(), layer.getBlock(), type));
      argument.setType(llm::KvCacheType::get(&getContext(), layers));
      for (Operation *user : argument.getUsers())
        if (auto layer = dyn_cast<llm::KvLayerOp>(user))
          layer.getResult().setType(layers[layer.getLayer()]);
    }
    step.setFunctionType(FunctionType::get(&getContext(),
                                           step.getBody().getArgumentTypes(),
                                           step.getResultTypes()));
  }

  void narrowActivations(func::FuncOp step, Type type) {
    // Assume that everything can be narrow, and take back until nothing
    // changes.
    llvm::SetVector<Value> narrow;
    step.walk([&](Operation *op) {
      if (op->getNumResults() == 1 && isF32Tensor(op->getResult(0)) &&
          (isMove(op) || canRoundResult(op)))
        narrow.insert(op->getResult(0));
    });
    auto staysNarrow = [&](Value value) {
      Operation *op = value.getDefiningOp();
      if (isMove(op) && !llvm::all_of(op->getOperands(), [&](Value operand) {
            return !isF32Tensor(operand) || narrow.contains(operand);
          }))
        return false;
      return llvm::all_of(value.getUses(), [&](OpOperand &use) {
        Operation *user = use.getOwner();
        return acceptsNarrow(use) ||
               (isMove(user) && narrow.contains(user->getResult(0)));
      });
    };
    while (narrow.remove_if([&](Value value) { return !staysNarrow(value); }))
      ;
    for (Value value : narrow)
      value.setType(withElement(value.getType(), type));

    // What a GEMM reads and could not be narrowed is cast, once for all
    // readers.
    DenseMap<Value, Value> casts;
    step.walk([&](Operation *op) {
      for (OpOperand &use : op->getOpOperands()) {
        if (!isGemmInput(use) || !isF32Tensor(use.get()))
          continue;
        Value &cast = casts[use.get()];
        if (!cast) {
          OpBuilder builder(op);
          cast = arith::TruncFOp::create(builder, op->getLoc(),
                                         withElement(use.get().getType(), type),
                                         use.get());
        }
        use.set(cast);
      }
    });
  }
};

} // namespace
