//===- Rotation.h - recognises rotary embeddings ----------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_1_RAISE_ROTATION_H
#define LLMC_PASSES_1_RAISE_ROTATION_H

#include "dialects/llm/LlmDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/1_raise/Elements.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace llmc {

// The heads that are rotated, as a part of some tensor: `first` is the element
// at position 0 of the last dimension, `size` the number of elements of a head.
// `rows` and `heads` are the variables (dimensions of the matched value) that
// count tokens and heads; there is no `heads` when there is one head.
struct HeadsView {
  Element first;
  int64_t size = 0;
  int64_t rows = 0;
  std::optional<int64_t> heads;

  // The view as a [T, heads, size] tensor.
  mlir::Value materialize(mlir::OpBuilder &builder, mlir::Location loc) const;
};

// A matched rotary embedding.
struct Rotation {
  mlir::Value value; // what was matched
  llm::RopeStyle style = llm::RopeStyle::Half;
  HeadsView input;
  mlir::Value positions;   // [T] integers
  mlir::Value frequencies; // [R/2]
  double scale = 1.0;      // of cosines and sines
  mlir::Location cosLoc;

  // A [T, heads, D] tensor in the shape of `value`.
  mlir::Value restoreShape(mlir::Value rope, mlir::OpBuilder &builder,
                           mlir::Location loc) const;
};

class RotationMatcher {
public:
  explicit RotationMatcher(mlir::func::FuncOp func);

  // Elementwise ops and views whose result depends on a cosine or sine, in
  // program order.
  llvm::ArrayRef<mlir::Operation *> getDependentOps() const {
    return dependent.getArrayRef();
  }

  // `reason` says in words why a value is not a rope.
  std::optional<Rotation> match(mlir::Value value, std::string &reason) const;

private:
  // cos or sin of positions[row] * frequencies[index].
  struct Angle {
    bool isSin;
    mlir::Value positions, frequencies;
    int64_t row, index;
    mlir::Location loc;

    bool isSameAs(const Angle &other) const {
      return positions == other.positions && frequencies == other.frequencies &&
             row == other.row && index == other.index;
    }
  };
  // coefficient * (cos or sin) * element, where either factor may be absent.
  struct Term {
    double coefficient = 1.0;
    std::optional<Angle> angle;
    std::optional<Element> element;
  };
  using Sum = llvm::SmallVector<Term, 2>;
  // scale * (own * cos(angle) + or - partner * sin(angle)).
  struct Turned {
    Element own, partner;
    Angle angle;
    double scale;
    bool subtracts;
  };

  std::optional<Sum> evaluate(Element element) const;
  static std::optional<Turned> asTurned(const Sum &sum);
  std::optional<Sum> multiply(const Sum &lhs, const Sum &rhs) const;
  std::optional<Angle> matchAngle(mlir::Operation *op, Element operand) const;

  llvm::SetVector<mlir::Operation *> dependent;
};

} // namespace llmc

#endif // LLMC_PASSES_1_RAISE_ROTATION_H
