//===- Elements.cpp - which element of which tensor a view reads ----------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/1_raise/Elements.h"

#include "dialects/llm/LlmDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;

using Coordinates = SmallVector<Coordinate, 4>;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

Element llmc::wholeTensor(Value tensor) {
  Element element{tensor, {}};
  for (auto [dim, size] : llvm::enumerate(typeOf(tensor).getShape()))
    element.at.push_back(size == 1 ? Coordinate::number(0)
                                   : Coordinate::variable(dim));
  return element;
}

// Each step returns the coordinates in the op's source, or none when they are
// not known numbers or plain variables there.

static std::optional<Coordinates> stepSlice(tensor::ExtractSliceOp op,
                                            ArrayRef<Coordinate> at) {
  Coordinates source;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  size_t next = 0;
  for (auto [dim, offset, stride] :
       llvm::enumerate(op.getStaticOffsets(), op.getStaticStrides())) {
    if (ShapedType::isDynamic(offset) || ShapedType::isDynamic(stride))
      return std::nullopt;
    Coordinate inner = dropped[dim] ? Coordinate::number(0) : at[next++];
    if (inner.isNumber())
      source.push_back(Coordinate::number(offset + inner.getNumber() * stride));
    else if (offset == 0 && stride == 1 &&
             op.getStaticSizes()[dim] == op.getSourceType().getDimSize(dim))
      source.push_back(inner);
    else
      return std::nullopt;
  }
  return source;
}

static std::optional<Element> stepConcat(tensor::ConcatOp op,
                                         ArrayRef<Coordinate> at) {
  uint64_t dim = op.getDim();
  if (!at[dim].isNumber())
    return std::nullopt;
  int64_t position = at[dim].getNumber();
  for (Value part : op.getInputs()) {
    int64_t size = typeOf(part).getDimSize(dim);
    if (ShapedType::isDynamic(size))
      return std::nullopt;
    if (position < size) {
      Element element{part, Coordinates(at)};
      element.at[dim] = Coordinate::number(position);
      return element;
    }
    position -= size;
  }
  return std::nullopt;
}

// From the dimensions `inner` (sizes) of a group to the one dimension they
// form. A variable stays one only when all other dimensions of the group have
// size 1.
static std::optional<Coordinate> joinGroup(ArrayRef<int64_t> inner,
                                           ArrayRef<Coordinate> at) {
  int64_t position = 0;
  for (auto [dim, size] : llvm::enumerate(inner)) {
    if (!at[dim].isNumber()) {
      bool alone =
          llvm::all_of(llvm::seq<size_t>(0, inner.size()),
                       [&](size_t i) { return i == dim || inner[i] == 1; });
      return alone ? std::optional(at[dim]) : std::nullopt;
    }
    // The size of the outermost dimension, the only one that may be dynamic,
    // does not matter.
    if (dim != 0 && ShapedType::isDynamic(size))
      return std::nullopt;
    position = (dim ? position * size : 0) + at[dim].getNumber();
  }
  return Coordinate::number(position);
}

// From one dimension to the dimensions `inner` (sizes) that it is split into.
static bool splitGroup(ArrayRef<int64_t> inner, Coordinate at,
                       Coordinates &out) {
  if (!at.isNumber()) {
    bool placed = false;
    for (int64_t size : inner) {
      if (size == 1) {
        out.push_back(Coordinate::number(0));
        continue;
      }
      if (placed)
        return false;
      out.push_back(at);
      placed = true;
    }
    return true;
  }
  int64_t position = at.getNumber();
  Coordinates reversed;
  for (int64_t size : llvm::reverse(inner)) {
    bool outermost = reversed.size() + 1 == inner.size();
    if (ShapedType::isDynamic(size) && !outermost)
      return false;
    reversed.push_back(
        Coordinate::number(outermost ? position : position % size));
    if (!outermost)
      position /= size;
  }
  out.append(reversed.rbegin(), reversed.rend());
  return true;
}

static std::optional<Coordinates> stepExpand(tensor::ExpandShapeOp op,
                                             ArrayRef<Coordinate> at) {
  Coordinates source;
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    std::optional<Coordinate> joined = joinGroup(
        op.getResultType().getShape().slice(group.front(), group.size()),
        at.slice(group.front(), group.size()));
    if (!joined)
      return std::nullopt;
    source.push_back(*joined);
  }
  return source;
}

static std::optional<Coordinates> stepCollapse(tensor::CollapseShapeOp op,
                                               ArrayRef<Coordinate> at) {
  Coordinates source;
  for (auto [group, coordinate] :
       llvm::zip_equal(op.getReassociationIndices(), at))
    if (!splitGroup(
            op.getSrcType().getShape().slice(group.front(), group.size()),
            coordinate, source))
      return std::nullopt;
  return source;
}

static Coordinates stepBroadcast(llm::BroadcastOp op, ArrayRef<Coordinate> at) {
  RankedTensorType input = typeOf(op.getInput());
  Coordinates source(at.take_back(input.getRank()));
  for (auto [coordinate, size] : llvm::zip_equal(source, input.getShape()))
    if (size == 1)
      coordinate = Coordinate::number(0);
  return source;
}

static Coordinates stepTranspose(llm::TransposeOp op, ArrayRef<Coordinate> at) {
  Coordinates source(at);
  for (auto [dim, from] : llvm::enumerate(op.getPermutation()))
    source[from] = at[dim];
  return source;
}

static std::optional<Element> step(const Element &element) {
  Operation *op = element.tensor.getDefiningOp();
  ArrayRef<Coordinate> at = element.at;
  if (!op)
    return std::nullopt;
  auto from = [&](std::optional<Coordinates> source) -> std::optional<Element> {
    if (!source)
      return std::nullopt;
    return Element{op->getOperand(0), *source};
  };
  return llvm::TypeSwitch<Operation *, std::optional<Element>>(op)
      .Case([&](tensor::ExtractSliceOp op) { return from(stepSlice(op, at)); })
      .Case([&](tensor::ConcatOp op) { return stepConcat(op, at); })
      .Case([&](tensor::ExpandShapeOp op) { return from(stepExpand(op, at)); })
      .Case([&](tensor::CollapseShapeOp op) {
        return from(stepCollapse(op, at));
      })
      .Case([&](llm::BroadcastOp op) { return from(stepBroadcast(op, at)); })
      .Case([&](llm::TransposeOp op) { return from(stepTranspose(op, at)); })
      .Case<arith::ExtFOp, arith::TruncFOp, tensor::CastOp>(
          [&](auto) { return from(Coordinates(at)); })
      .Default(std::nullopt);
}

Element llmc::traceViews(Element element) {
  while (std::optional<Element> source = step(element))
    element = *source;
  return element;
}
