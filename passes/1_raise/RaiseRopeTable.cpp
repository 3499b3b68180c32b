//===- RaiseRopeTable.cpp - stored sines and cosines of positions ---------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// GPT-J and CodeGen keep sin(p f) and cos(p f) of every position p in one table
// and gather rows of it. The frequencies are recovered from the table, and the
// rows are computed again, so that llm-raise-rope sees what it knows.
//
//===----------------------------------------------------------------------===//

#include "passes/1_raise/Passes.h"
#include "passes/Parameters.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>
#include <numbers>

namespace llmc {
#define GEN_PASS_DEF_LLMRAISEROPETABLE
#include "passes/1_raise/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

// A [P, 2F] table, of which row p is sin(p f) and cos(p f), in `sinFirst`
// order.
struct Sinusoids {
  SmallVector<float> frequencies;
  bool sinFirst;
};

// The frequency whose sines and cosines these are. Each row says the angle up
// to whole turns; doubling the position keeps the remaining doubt below half a
// turn and halves the error.
float recoverFrequency(ArrayRef<float> sin, ArrayRef<float> cos) {
  double frequency = std::atan2(sin[1], cos[1]);
  for (size_t p = 2; p < sin.size(); p *= 2) {
    double angle = std::atan2(sin[p], cos[p]);
    frequency +=
        std::remainder(angle - double(p) * frequency, 2 * std::numbers::pi) /
        double(p);
  }
  return float(frequency);
}

// The table was computed in float32: the angle is off by a few units in its
// last place, and so are its sine and cosine.
bool isSinusoid(ArrayRef<float> sin, ArrayRef<float> cos, float frequency) {
  for (size_t p = 0; p < sin.size(); ++p) {
    double angle = double(p) * frequency;
    double tolerance = 0x1p-20 + std::abs(angle) * 0x1p-22;
    if (!(std::abs(sin[p] - std::sin(angle)) <= tolerance) ||
        !(std::abs(cos[p] - std::cos(angle)) <= tolerance))
      return false;
  }
  return true;
}

std::optional<Sinusoids> matchTable(llm::ParameterOp parameter) {
  auto value = dyn_cast_or_null<DenseElementsAttr>(
      parameter.getValue().value_or(ElementsAttr()));
  RankedTensorType type = parameter.getTensorType();
  if (!value || type.getRank() != 2 || !type.getElementType().isF32() ||
      type.getDimSize(0) < 2 || type.getDimSize(1) % 2)
    return std::nullopt;
  int64_t rows = type.getDimSize(0), half = type.getDimSize(1) / 2;
  SmallVector<float> table(value.getValues<float>());
  auto column = [&](int64_t index) {
    SmallVector<float> result(rows);
    for (int64_t p = 0; p < rows; ++p)
      result[p] = table[p * 2 * half + index];
    return result;
  };
  Sinusoids found;
  found.sinFirst = table[0] == 0; // sin(0)
  for (int64_t k = 0; k < half; ++k) {
    SmallVector<float> sin = column(found.sinFirst ? k : half + k);
    SmallVector<float> cos = column(found.sinFirst ? half + k : k);
    float frequency = recoverFrequency(sin, cos);
    if (!isSinusoid(sin, cos, frequency))
      return std::nullopt;
    found.frequencies.push_back(frequency);
  }
  return found;
}

// Gathered rows, if they are only read as their two halves.
std::optional<SmallVector<tensor::ExtractSliceOp>>
matchHalves(llm::EmbeddingOp gather, int64_t half) {
  SmallVector<tensor::ExtractSliceOp> slices;
  for (Operation *user : gather->getUsers()) {
    if (auto dim = dyn_cast<tensor::DimOp>(user);
        dim && dim.getConstantIndex() == 0)
      continue;
    auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
    if (!slice || !slice.hasUnitStride() || slice.getType().getRank() != 2 ||
        slice.getStaticOffset(0) != 0 || slice.getStaticOffset(1) % half ||
        slice.getStaticSize(1) != half)
      return std::nullopt;
    slices.push_back(slice);
  }
  return slices;
}

struct RaiseRopeTablePass
    : llmc::impl::LlmRaiseRopeTableBase<RaiseRopeTablePass> {
  void runOnOperation() override {
    SmallVector<llm::EmbeddingOp> gathers;
    getOperation().walk([&](llm::EmbeddingOp op) { gathers.push_back(op); });
    for (llm::EmbeddingOp gather : gathers)
      raise(gather);
    eraseUnusedParameters(getOperation());
  }

  void raise(llm::EmbeddingOp gather) {
    auto weight = gather.getTable().getDefiningOp<llm::WeightOp>();
    auto parameter =
        weight ? getOperation().lookupSymbol<llm::ParameterOp>(weight.getName())
               : nullptr;
    if (!parameter)
      return;
    std::optional<Sinusoids> table = matchTable(parameter);
    if (!table)
      return;
    int64_t half = table->frequencies.size();
    auto slices = matchHalves(gather, half);
    if (!slices || slices->empty())
      return;
    Value angle = angles(gather, declare(parameter, table->frequencies));
    OpBuilder builder(gather);
    builder.setInsertionPointAfterValue(angle);
    for (tensor::ExtractSliceOp slice : *slices) {
      bool isFirst = slice.getStaticOffset(1) == 0;
      Value value =
          isFirst == table->sinFirst
              ? Value(math::SinOp::create(builder, slice.getLoc(), angle))
              : Value(math::CosOp::create(builder, slice.getLoc(), angle));
      slice.replaceAllUsesWith(value);
      slice.erase();
    }
    // Sizes of the gathered rows are sizes of the positions.
    for (Operation *user : llvm::make_early_inc_range(gather->getUsers()))
      user->setOperand(0, angle);
    gather.erase();
  }

  // positions * frequencies, as [T, F].
  Value angles(llm::EmbeddingOp gather, llm::ParameterOp frequencies) {
    OpBuilder builder(gather);
    Location loc = gather.getLoc();
    Value ids = gather.getIds();
    int64_t rows = cast<RankedTensorType>(ids.getType()).getDimSize(0);
    int64_t half = frequencies.getTensorType().getDimSize(0);
    auto floats = [&](ArrayRef<int64_t> shape) {
      return RankedTensorType::get(shape, builder.getF32Type());
    };
    auto type = floats({rows, half});
    OpFoldResult size = builder.getIndexAttr(rows);
    SmallVector<Value> sizes;
    if (ShapedType::isDynamic(rows)) {
      sizes.push_back(tensor::DimOp::create(builder, loc, ids, 0));
      size = sizes.front();
    }
    Value position = arith::SIToFPOp::create(builder, loc, floats({rows}), ids);
    Value column = tensor::ExpandShapeOp::create(
        builder, loc, floats({rows, 1}), position,
        ArrayRef<ReassociationIndices>{{0, 1}},
        ArrayRef<OpFoldResult>{size, builder.getIndexAttr(1)});
    Value frequency = llm::WeightOp::create(
        builder, loc, frequencies.getTensorType(), frequencies.getSymName());
    Value lhs =
        llm::BroadcastOp::create(builder, loc, type, column, ValueRange());
    Value rhs = llm::BroadcastOp::create(builder, loc, type, frequency, sizes);
    return arith::MulFOp::create(builder, loc, lhs, rhs);
  }

  llm::ParameterOp declare(llm::ParameterOp table,
                           ArrayRef<float> frequencies) {
    OpBuilder builder(table);
    auto type = RankedTensorType::get({int64_t(frequencies.size())},
                                      builder.getF32Type());
    auto parameter = cast<llm::ParameterOp>(builder.clone(*table));
    parameter.setType(type);
    parameter.setValueAttr(DenseElementsAttr::get(type, frequencies));
    parameter.setSymName((table.getSymName() + ".inv_freq").str());
    SymbolTable(getOperation()).insert(parameter);
    return parameter;
  }
};

} // namespace
