//===- Rotation.cpp - recognises rotary embeddings ------------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/1_raise/Rotation.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/1_raise/Match.h"
#include "passes/1_raise/Views.h"

#include <cmath>

using namespace mlir;
using namespace llmc;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

RotationMatcher::RotationMatcher(func::FuncOp func) {
  func.walk<WalkOrder::PreOrder>([&](Operation *op) {
    bool depends = isa<math::CosOp, math::SinOp>(op);
    if (isElementwise(op) || isView(op))
      depends |= llvm::any_of(op->getOperands(), [&](Value operand) {
        return dependent.contains(operand.getDefiningOp());
      });
    if (depends && isa<RankedTensorType>(op->getResult(0).getType()))
      dependent.insert(op);
  });
}

// The last step from an angle to its factors: `matmul` of a column and a row,
// or a product of broadcasts.
static std::optional<std::pair<Element, Element>>
factorsOf(const Element &angle) {
  auto elementOf = [](Value tensor, ArrayRef<Coordinate> at) {
    return traceViews({tensor, SmallVector<Coordinate, 4>(at)});
  };
  Operation *op = angle.tensor.getDefiningOp();
  if (auto mul = dyn_cast_or_null<arith::MulFOp>(op))
    return std::pair(elementOf(mul.getLhs(), angle.at),
                     elementOf(mul.getRhs(), angle.at));
  auto matmul = dyn_cast_or_null<llm::MatmulOp>(op);
  if (!matmul || typeOf(matmul.getLhs()).getShape().back() != 1)
    return std::nullopt;
  SmallVector<Coordinate, 4> lhs(angle.at), rhs(angle.at);
  lhs.back() = Coordinate::number(0);
  rhs[rhs.size() - 2] = Coordinate::number(0);
  return std::pair(elementOf(matmul.getLhs(), lhs),
                   elementOf(matmul.getRhs(), rhs));
}

std::optional<RotationMatcher::Angle>
RotationMatcher::matchAngle(Operation *op, Element operand) const {
  auto factors = factorsOf(traceViews(std::move(operand)));
  if (!factors)
    return std::nullopt;
  auto [position, frequency] = *factors;
  if (!position.tensor.getDefiningOp<arith::SIToFPOp>())
    std::swap(position, frequency);
  auto convert = position.tensor.getDefiningOp<arith::SIToFPOp>();
  if (!convert)
    return std::nullopt;
  position = traceViews({convert.getIn(), position.at});
  if (position.at.size() != 1 || position.at[0].isNumber() ||
      frequency.at.size() != 1 || !frequency.at[0].isNumber())
    return std::nullopt;
  return Angle{isa<math::SinOp>(op),
               position.tensor,
               frequency.tensor,
               position.at[0].getDim(),
               frequency.at[0].getNumber(),
               op->getLoc()};
}

std::optional<RotationMatcher::Sum>
RotationMatcher::multiply(const Sum &lhs, const Sum &rhs) const {
  Sum product;
  for (const Term &a : lhs) {
    for (const Term &b : rhs) {
      if ((a.angle && b.angle) || (a.element && b.element))
        return std::nullopt;
      product.push_back({a.coefficient * b.coefficient,
                         a.angle ? a.angle : b.angle,
                         a.element ? a.element : b.element});
    }
  }
  return product;
}

std::optional<RotationMatcher::Sum>
RotationMatcher::evaluate(Element element) const {
  element = traceViews(std::move(element));
  if (std::optional<double> number = splatValue(element.tensor))
    return Sum{{*number, std::nullopt, std::nullopt}};
  Operation *op = element.tensor.getDefiningOp();
  auto operand = [&](unsigned index) {
    return evaluate({op->getOperand(index), element.at});
  };
  auto scaled = [](std::optional<Sum> sum, double factor) {
    for (Term &term :
         sum ? MutableArrayRef<Term>(*sum) : MutableArrayRef<Term>())
      term.coefficient *= factor;
    return sum;
  };
  if (isa_and_nonnull<arith::NegFOp>(op))
    return scaled(operand(0), -1.0);
  if (!op || !dependent.contains(op))
    return Sum{{1.0, std::nullopt, element}};

  if (isa<math::CosOp, math::SinOp>(op)) {
    std::optional<Angle> angle =
        matchAngle(op, {op->getOperand(0), element.at});
    return angle ? std::optional(Sum{{1.0, angle, std::nullopt}})
                 : std::nullopt;
  }
  if (isa<arith::AddFOp, arith::SubFOp>(op)) {
    std::optional<Sum> sum = operand(0);
    std::optional<Sum> rhs =
        scaled(operand(1), isa<arith::SubFOp>(op) ? -1.0 : 1.0);
    if (!sum || !rhs || sum->size() + rhs->size() > 2)
      return std::nullopt;
    sum->append(*rhs);
    return sum;
  }
  if (isa<arith::MulFOp>(op)) {
    std::optional<Sum> lhs = operand(0), rhs = operand(1);
    return lhs && rhs ? multiply(*lhs, *rhs) : std::nullopt;
  }
  if (isa<arith::DivFOp>(op))
    if (std::optional<double> divisor = splatValue(op->getOperand(1)))
      return scaled(operand(0), 1.0 / *divisor);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

std::optional<RotationMatcher::Turned>
RotationMatcher::asTurned(const Sum &sum) {
  if (sum.size() != 2)
    return std::nullopt;
  const Term *cos = &sum[0], *sin = &sum[1];
  if (cos->angle && cos->angle->isSin)
    std::swap(cos, sin);
  if (!cos->angle || cos->angle->isSin || !sin->angle || !sin->angle->isSin ||
      !(cos->angle->isSameAs(*sin->angle)) || !cos->element || !sin->element ||
      cos->coefficient != std::abs(sin->coefficient))
    return std::nullopt;
  return Turned{*cos->element, *sin->element, *cos->angle, cos->coefficient,
                sin->coefficient < 0};
}

// Distance of two elements along the last dimension, if they differ only there.
static std::optional<int64_t> distanceOf(const Element &from, Element to) {
  if (from.at.size() != to.at.size() || to.at.empty() ||
      !from.at.back().isNumber() || !to.at.back().isNumber())
    return std::nullopt;
  int64_t distance = to.at.back().getNumber() - from.at.back().getNumber();
  to.at.back() = from.at.back();
  return to == from ? std::optional(distance) : std::nullopt;
}

std::optional<Rotation> RotationMatcher::match(Value value,
                                               std::string &reason) const {
  RankedTensorType type = typeOf(value);
  int64_t last = type.getRank() - 1;
  if (type.getRank() < 2 || type.getRank() > 3 || type.isDynamicDim(last)) {
    reason = "heads are tensors of rank 2 or 3 with a static last dimension";
    return std::nullopt;
  }
  int64_t size = type.getDimSize(last);
  auto reject = [&](int64_t element, StringRef text) {
    reason = ("element " + Twine(element) + " of a head " + text).str();
    return std::nullopt;
  };
  auto sumAt = [&](int64_t position) {
    Element element = wholeTensor(value);
    element.at[last] = Coordinate::number(position);
    return evaluate(element);
  };

  // The first element says which tensor is rotated, by which table, and how far
  // the elements of a pair are apart.
  std::optional<Sum> sum = sumAt(0);
  std::optional<Turned> first = sum ? asTurned(*sum) : std::nullopt;
  if (!first)
    return reject(
        0, "is not an element times a cosine minus another times a sine");
  std::optional<int64_t> distance = distanceOf(first->own, first->partner);
  if (!distance || *distance < 1 || !first->subtracts)
    return reject(0, "is not paired with a later element of the same head");
  int64_t frequencies = typeOf(first->angle.frequencies).getDimSize(0);
  bool interleaved = *distance == 1 && frequencies != 1;
  if (!interleaved && *distance != frequencies)
    return reject(
        0, "is paired with neither the next element nor the first of the "
           "second half");

  for (int64_t i = 0; i < size; ++i) {
    sum = sumAt(i);
    if (!sum)
      return reject(i, "is not a sum of elements times cosines and sines");
    if (i >= 2 * frequencies) {
      const Term &term = sum->front();
      if (sum->size() != 1 || term.angle || !term.element ||
          term.coefficient != 1.0 || distanceOf(first->own, *term.element) != i)
        return reject(i,
                      "lies behind the rotated ones but is not passed through");
      continue;
    }
    std::optional<Turned> turned = asTurned(*sum);
    if (!turned || turned->scale != first->scale)
      return reject(i, "is not rotated like the elements before it");
    bool isFirst = interleaved ? i % 2 == 0 : i < *distance;
    Angle angle = first->angle;
    angle.index = interleaved ? i / 2 : i % *distance;
    if (!angle.isSameAs(turned->angle))
      return reject(i, "is not turned by the angle of its pair");
    if (distanceOf(first->own, turned->own) != i ||
        distanceOf(turned->own, turned->partner) !=
            (isFirst ? *distance : -*distance) ||
        turned->subtracts != isFirst)
      return reject(i, "is not the element of its pair that a rotation gives");
  }

  Rotation rotation{value,
                    interleaved ? llm::RopeStyle::Interleaved
                                : llm::RopeStyle::Half,
                    {first->own, size, first->angle.row, std::nullopt},
                    first->angle.positions,
                    first->angle.frequencies,
                    first->scale,
                    first->angle.loc};
  for (Coordinate at : ArrayRef(first->own.at).drop_back())
    if (!at.isNumber() && at.getDim() != first->angle.row)
      rotation.input.heads = at.getDim();
  if (!llvm::is_contained(first->own.at,
                          Coordinate::variable(first->angle.row)))
    return reject(0, "does not belong to the token whose position turns it");
  return rotation;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

Value HeadsView::materialize(OpBuilder &builder, Location loc) const {
  Value tensor = first.tensor;
  RankedTensorType type = typeOf(tensor);
  SmallVector<int64_t> offsets, sizes(type.getShape());
  for (auto [dim, at] : llvm::enumerate(first.at)) {
    offsets.push_back(at.isNumber() ? at.getNumber() : 0);
    if (at.isNumber())
      sizes[dim] = dim + 1 == first.at.size() ? size : 1;
  }
  tensor = slice(builder, loc, tensor, offsets, sizes);

  // Rows first, then heads if there are several, then the head.
  SmallVector<int64_t> permutation, kept;
  for (std::optional<int64_t> variable : {std::optional(rows), heads})
    for (auto [dim, at] : llvm::enumerate(first.at))
      if (variable && at == Coordinate::variable(*variable))
        permutation.push_back(dim);
  size_t numVariables = permutation.size();
  for (auto [dim, at] : llvm::enumerate(first.at))
    if (at.isNumber())
      permutation.push_back(dim);
  tensor = transpose(builder, loc, tensor, permutation);
  SmallVector<int64_t> shape(
      typeOf(tensor).getShape().take_front(numVariables));
  if (!heads)
    shape.push_back(1);
  shape.push_back(size);
  return reshapeUnits(builder, loc, tensor, shape);
}

Value Rotation::restoreShape(Value rope, OpBuilder &builder,
                             Location loc) const {
  RankedTensorType type = typeOf(value);
  if (type.getRank() == 2)
    return reshapeUnits(builder, loc, rope, type.getShape());
  // [T, heads, D] as it is, or [heads, T, D].
  return input.rows == 0 ? rope : transpose(builder, loc, rope, {1, 0, 2});
}
