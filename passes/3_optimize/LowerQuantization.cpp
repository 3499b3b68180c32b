//===- LowerQuantization.cpp - linears of codes and scales ----------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/3_optimize/Passes.h"

#include "passes/3_optimize/Quantization.h"
#include "passes/Parameters.h"

#include "llvm/ADT/MapVector.h"

namespace llmc {
#define GEN_PASS_DEF_LLMLOWERQUANTIZATION
#include "passes/3_optimize/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

// The parameters that a weight becomes; zeros may be null.
struct QuantizedWeight {
  llm::ParameterOp codes, scales, zeros;
};

struct LowerQuantizationPass
    : llmc::impl::LlmLowerQuantizationBase<LowerQuantizationPass> {
  using LlmLowerQuantizationBase::LlmLowerQuantizationBase;

  void runOnOperation() override {
    known.clear();
    replaced.clear();
    SmallVector<llm::LinearOp> marked;
    getOperation().walk([&](llm::LinearOp linear) {
      if (quantizationOf(linear))
        marked.push_back(linear);
    });
    SymbolTable symbols(getOperation());
    for (llm::LinearOp linear : marked)
      if (failed(lower(linear, symbols)))
        return signalPassFailure();
    if (marked.empty())
      return;
    eraseUnusedParameters(getOperation());
    takeOverNames();
  }

private:
  LogicalResult lower(llm::LinearOp linear, SymbolTable &symbols) {
    auto read = linear.getWeight().getDefiningOp<llm::WeightOp>();
    auto parameter =
        read ? symbols.lookup<llm::ParameterOp>(read.getName()) : nullptr;
    if (!parameter || !parameter.getRecipeAttr() || parameter.getLayoutAttr())
      return linear.emitError()
             << "expected a weight that is made from the checkpoint and has no "
                "layout yet; quantize before layouts are chosen";
    llm::QuantizationAttr quantization = quantizationOf(linear);
    QuantizedWeight weight = quantize(parameter, quantization, symbols);

    OpBuilder b(linear);
    Location loc = linear.getLoc();
    auto readOf = [&](llm::ParameterOp from) -> Value {
      return llm::WeightOp::create(b, loc, from.getTensorType(),
                                   FlatSymbolRefAttr::get(from));
    };
    Value codes = readOf(weight.codes), scales = readOf(weight.scales);
    Value zeros = weight.zeros ? readOf(weight.zeros) : Value();
    Value input = linear.getInput(), inputScale;
    if (Type type = quantization.getInput()) {
      auto rows = cast<RankedTensorType>(input.getType());
      inputScale = llm::DynamicScaleOp::create(
          b, loc,
          RankedTensorType::get({rows.getDimSize(0), 1}, b.getF32Type()), input,
          /*group=*/b.getI64IntegerAttr(0), b.getF64FloatAttr(codeLimit(type)));
      input =
          llm::QuantizeOp::create(b, loc, rows.clone(type), input, inputScale);
    }
    Value result = llm::ScaledLinearOp::create(b, loc, linear.getType(), input,
                                               codes, scales, inputScale, zeros,
                                               linear.getBias());
    linear.replaceAllUsesWith(result);
    linear.erase();
    return success();
  }

  // Once for each parameter and format, whoever reads it.
  QuantizedWeight quantize(llm::ParameterOp parameter,
                           llm::QuantizationAttr quantization,
                           SymbolTable &symbols) {
    Type type = quantization.getWeight();
    int64_t group = quantization.getGroup();
    bool hasZeros = quantization.getZeros();
    MLIRContext *context = &getContext();
    Attribute codes = llm::CodesAttr::get(context, parameter.getRecipeAttr(),
                                          type, group, hasZeros);
    auto [entry, isNew] = known.insert({codes, {}});
    if (!isNew)
      return entry->second;
    Attribute scales = llm::ScalesAttr::get(context, parameter.getRecipeAttr(),
                                            type, group, hasZeros);
    RankedTensorType shape = parameter.getTensorType();
    int64_t perRow = group ? shape.getDimSize(1) / group : 1;
    std::string name = (parameter.getSymName() + ".quantized").str();
    OpBuilder b(parameter);
    auto declare = [&](const Twine &name, RankedTensorType type,
                       Attribute recipe) {
      auto declared = llm::ParameterOp::create(
          b, parameter.getLoc(), b.getStringAttr(name), TypeAttr::get(type),
          recipe, /*value=*/ElementsAttr(), /*layout=*/Attribute());
      symbols.insert(declared, parameter->getIterator());
      return declared;
    };
    QuantizedWeight made;
    made.codes = declare(name, shape.clone(type), codes);
    made.scales = declare(
        name + "_scale",
        RankedTensorType::get({shape.getDimSize(0), perRow}, b.getF32Type()),
        scales);
    if (hasZeros)
      made.zeros = declare(
          name + "_zero",
          RankedTensorType::get({shape.getDimSize(0), perRow}, b.getI8Type()),
          llm::ZerosAttr::get(context, parameter.getRecipeAttr(), type, group));
    replaced.push_back({made, parameter.getSymName().str()});
    return entry->second = made;
  }

  // A weight of which only codes are left is called as it always was.
  void takeOverNames() {
    SymbolTable fresh(getOperation());
    for (auto &[made, name] : replaced) {
      std::string scale = name + "_scale", zero = name + "_zero";
      if (fresh.lookup(name) || fresh.lookup(scale) || fresh.lookup(zero))
        continue;
      if (failed(fresh.rename(made.codes, name)) ||
          failed(fresh.rename(made.scales, scale)) ||
          (made.zeros && failed(fresh.rename(made.zeros, zero))))
        return signalPassFailure();
    }
  }

  llvm::MapVector<Attribute, QuantizedWeight> known;
  SmallVector<std::pair<QuantizedWeight, std::string>> replaced;
};

} // namespace
