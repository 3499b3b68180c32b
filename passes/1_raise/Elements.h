//===- Elements.h - which element of which tensor a view reads --*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Models move data in many ways that mean the same: slice and concatenate,
// stack and flatten, transpose before or after. Instead of one pattern for
// each, the raise passes ask, for a chosen element of a result, which element
// of which tensor it is.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_1_RAISE_ELEMENTS_H
#define LLMC_PASSES_1_RAISE_ELEMENTS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace llmc {

// A position along one dimension: a number, or "whatever the position along
// dimension d of the tensor we started from is".
class Coordinate {
public:
  static Coordinate number(int64_t value) { return Coordinate(value, false); }
  static Coordinate variable(int64_t dim) { return Coordinate(dim, true); }

  bool isNumber() const { return !isVariable; }
  bool isNumber(int64_t value) const { return !isVariable && payload == value; }
  int64_t getNumber() const { return payload; }
  int64_t getDim() const { return payload; }

  friend bool operator==(Coordinate a, Coordinate b) {
    return a.payload == b.payload && a.isVariable == b.isVariable;
  }
  friend bool operator!=(Coordinate a, Coordinate b) { return !(a == b); }

private:
  Coordinate(int64_t payload, bool isVariable)
      : payload(payload), isVariable(isVariable) {}
  int64_t payload;
  bool isVariable;
};

// One element of a tensor, or a family of them when coordinates are variables.
struct Element {
  mlir::Value tensor;
  llvm::SmallVector<Coordinate, 4> at;

  friend bool operator==(const Element &a, const Element &b) {
    return a.tensor == b.tensor && a.at == b.at;
  }
};

// All of `tensor`: every dimension a variable, dimensions of size 1 the number
// 0.
Element wholeTensor(mlir::Value tensor);

// Follows slices, concatenations, reshapes, transposes, broadcasts and casts
// back to the element that is read, as far as its coordinates remain known.
Element traceViews(Element element);

} // namespace llmc

#endif // LLMC_PASSES_1_RAISE_ELEMENTS_H
