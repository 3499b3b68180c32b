// What follows the product in a linear kernel, evaluated on registers.
#pragma once

#include "passes/host/Entry.h"
#include "passes/host/LinearShape.h"
#include "passes/host/Product.h"

#include "llvm/ADT/DenseMap.h"

namespace llmc {

// Evaluates the values of a linear kernel's body at one row, a vector of
// columns at a time. Values before a packed GLU have the columns of the
// product, values after it half as many.
class LinearEpilogue {
public:
  using Vectors = llvm::SmallVector<mlir::Value>;

  // `product` holds one vector for each of `columns.product`.
  LinearEpilogue(mlir::OpBuilder &b, Entry &entry, const LinearShape &linear,
                 const LinearShape::Columns &columns, mlir::Value row,
                 Vectors product, VectorShape shape)
      : b(b), loc(entry.function.getLoc()), entry(entry), linear(linear),
        columns(columns), row(row), product(std::move(product)), shape(shape) {}

  // Stores a value that the kernel yields.
  void store(mlir::Value value, mlir::Value into);

private:
  Vectors evaluate(mlir::Value value);
  Vectors compute(mlir::Value value);
  Vectors broadcast(mlir::Value source, llvm::ArrayRef<mlir::Value> at);
  Vectors elementwise(mlir::Operation *op);
  Vectors packedGlu(llm::PackedGluOp op);
  Vectors load(mlir::Value memref, mlir::ValueRange leading,
               llvm::ArrayRef<mlir::Value> at);
  mlir::Value mask(mlir::Value memref, mlir::Value column);
  // First column of each vector of `value`; its last dimension tells which.
  llvm::ArrayRef<mlir::Value> columnsOf(mlir::Value value);
  mlir::VectorType vectorOf(mlir::Type element) {
    return mlir::VectorType::get({shape.lanes}, element);
  }

  mlir::OpBuilder &b;
  mlir::Location loc;
  Entry &entry;
  const LinearShape &linear;
  const LinearShape::Columns &columns;
  mlir::Value row;
  Vectors product;
  VectorShape shape;
  llvm::DenseMap<mlir::Value, Vectors> known;
};

} // namespace llmc
