//===- Match.cpp - matchers shared by the raise passes --------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/1_raise/Match.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

using namespace mlir;

Value llmc::skipBroadcasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<llm::BroadcastOp, arith::ExtFOp, arith::TruncFOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

double llmc::decimalValue(const APFloat &number) {
  if (&number.getSemantics() != &APFloat::IEEEsingle())
    return number.convertToDouble();
  std::array<char, 32> text{};
  std::to_chars(text.data(), text.data() + text.size() - 1,
                number.convertToFloat());
  return std::strtod(text.data(), nullptr);
}

std::optional<double> llmc::splatValue(Value value) {
  value = skipBroadcasts(value);
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat() ||
      !isa<FloatType>(elements.getElementType()))
    return std::nullopt;
  return decimalValue(elements.getSplatValue<APFloat>());
}

bool llmc::isSplat(Value value, double number) {
  std::optional<double> found = splatValue(value);
  return found && std::abs(*found - number) <= 1e-6 * std::abs(number);
}

Value llmc::lastDimVector(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Value vector = skipBroadcasts(value);
  auto vectorType = cast<RankedTensorType>(vector.getType());
  if (type.getRank() < 1 || vectorType.getRank() != 1 ||
      vectorType.getDimSize(0) != type.getShape().back())
    return {};
  return vector;
}

Value llmc::squared(Value value) {
  if (auto mul = value.getDefiningOp<arith::MulFOp>())
    return mul.getLhs() == mul.getRhs() ? mul.getLhs() : Value();
  if (auto pow = value.getDefiningOp<math::PowFOp>())
    return isSplat(pow.getRhs(), 2.0) ? pow.getLhs() : Value();
  return {};
}

llmc::Product llmc::flattenProduct(Value value) {
  Product product;
  SmallVector<Value> open{value};
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (std::optional<double> number = splatValue(next)) {
      product.scale *= *number;
    } else if (auto mul = next.getDefiningOp<arith::MulFOp>()) {
      open.push_back(mul.getRhs());
      open.push_back(mul.getLhs());
    } else if (auto div = next.getDefiningOp<arith::DivFOp>();
               div && splatValue(div.getRhs())) {
      product.scale /= *splatValue(div.getRhs());
      open.push_back(div.getLhs());
    } else {
      product.factors.push_back(next);
    }
  }
  return product;
}
