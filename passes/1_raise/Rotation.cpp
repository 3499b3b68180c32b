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

// The last step from an angle to its factors: `matmul` of a column and a row, or a
// product of broadcasts.
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
  return Angle{isa<math::SinOp>(op),     position.tensor,
               frequency.tensor,         position.at[0].getDim(),
               frequency.at[0].getNumber(), op->getLoc()};
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
    for (Term &term : sum ? MutableArrayRef<Term>(*sum) : MutableArrayRef<Term>())
      term.coefficient *= factor;
    return sum;
  };
  if (isa_and_nonnull<arith::NegFOp>(op))
    return scaled(operand(0), -1.0);
  if (!op || !dependent.contains(op))
    return Sum{{1.0, std::nullopt, element}};

  if (isa<math::CosOp, math::SinOp>(op)) {
    std::optional<Angle> angle = matchAngle(op, {op->getOperand(0), element.at});
    return angle ? std::optional(Sum{{1.0, angle, std::nullopt}}) : std::nullopt;
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

std::optional<Rotation> RotationMatcher::match(Value value,
                                               std::string &reason) const {
  RankedTensorType type = typeOf(value);
  int64_t rank = type.getRank(), last = rank - 1;
  auto no = [&](const Twine &text) {
    reason = text.str();
    return std::nullopt;
  };
  if (rank < 2 || rank > 3 || type.isDynamicDim(last))
    return no("heads are tensors of rank 2 or 3 with a static last dimension");

  int64_t size = type.getDimSize(last), rotated = 0, distance = 0;
  std::optional<Angle> table;
  std::optional<Rotation> rotation;
  Element first{Value(), {}};
  for (int64_t i = 0; i < size; ++i) {
    Element root = wholeTensor(value);
    root.at[last] = Coordinate::number(i);
    std::optional<Sum> sum = evaluate(root);
    Twine where = "element " + Twine(i) + " of a head ";
    if (!sum)
      return no(where + "is not a sum of elements times cosines and sines");

    // The unrotated rest of the head.
    if (i && sum->size() == 1 && !(*sum)[0].angle && (*sum)[0].element) {
      Element expected = first;
      expected.at.back() =
          Coordinate::number(first.at.back().getNumber() + i);
      if ((*sum)[0].coefficient != 1.0 || !(*(*sum)[0].element == expected))
        return no(where + "is neither rotated nor passed through");
      continue;
    }
    if (sum->size() != 2 || rotated != i)
      return no(where + "is not the sum of two products");
    Term cos = (*sum)[0], sin = (*sum)[1];
    if (cos.angle && cos.angle->isSin)
      std::swap(cos, sin);
    if (!cos.angle || cos.angle->isSin || !sin.angle || !sin.angle->isSin ||
        !cos.element || !sin.element ||
        cos.coefficient != std::abs(sin.coefficient))
      return no(where + "is not an element times a cosine plus or minus an "
                        "element times a sine");
    if (!i) {
      table = cos.angle;
      first = *cos.element;
      if (first.at.empty() || !first.at.back().isNumber())
        return no(where + "does not lie at a fixed place of a tensor");
      distance = 0;
      rotation = Rotation{value,
                          llm::RopeStyle::Half,
                          {first, size, table->row, std::nullopt},
                          table->positions,
                          table->frequencies,
                          cos.coefficient,
                          table->loc};
    }
    auto placeOf = [&](const Element &element) -> std::optional<int64_t> {
      Element moved = element;
      if (moved.at.size() != first.at.size() || !moved.at.back().isNumber())
        return std::nullopt;
      moved.at.back() = first.at.back();
      if (!(moved == first))
        return std::nullopt;
      return element.at.back().getNumber() - first.at.back().getNumber();
    };
    std::optional<int64_t> own = placeOf(*cos.element),
                           partner = placeOf(*sin.element);
    if (!own || *own != i || !partner)
      return no(where + "combines elements of different tensors");
    if (!i)
      distance = *partner;
    // First or second of its pair, and the number of the pair.
    bool interleaved = distance == 1 && !(size == 2);
    bool isFirst = interleaved ? i % 2 == 0 : i < distance;
    int64_t pair = interleaved ? i / 2 : i % std::max<int64_t>(distance, 1);
    if (*partner != (isFirst ? i + distance : i - distance) ||
        (sin.coefficient < 0) != isFirst)
      return no(where + "is paired with element " + Twine(*partner) +
                ", unlike the elements before it");
    for (const Angle *angle : {&*cos.angle, &*sin.angle})
      if (angle->positions != table->positions || angle->row != table->row ||
          angle->frequencies != table->frequencies || angle->index != pair)
        return no(where + "is not turned by the angle of frequency " +
                  Twine(pair));
    if (cos.coefficient != rotation->scale)
      return no(where + "is scaled unlike the elements before it");
    rotation->style =
        interleaved ? llm::RopeStyle::Interleaved : llm::RopeStyle::Half;
    rotated = i + 1;
  }
  int64_t frequencies = typeOf(table->frequencies).getDimSize(0);
  if (rotated != 2 * frequencies)
    return no(Twine(rotated) + " elements are rotated by " + Twine(frequencies) +
              " frequencies");
  for (auto [dim, at] : llvm::enumerate(ArrayRef(first.at).drop_back()))
    if (!at.isNumber() && at.getDim() != table->row)
      rotation->input.heads = at.getDim();
  if (!llvm::is_contained(first.at, Coordinate::variable(table->row)))
    return no("the rotated elements do not depend on the token");
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
