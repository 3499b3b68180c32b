// What the lowerings of llm ops share: structured ops on tensors whose bodies
// compute in float32 whatever the element types are.
#pragma once

#include "dialects/llm/LlmDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace llmc {

// Computes one element: floats come as f32, the result may be f32 too.
using ElementFn = llvm::function_ref<mlir::Value(
    mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

// A constant of a float type or of a vector of floats.
mlir::Value floatConstant(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::Type type, double value);

// Converts between element types; integers are signed.
mlir::Value convertElement(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::Value value, mlir::Type type);

// The activation functions, on f32 or a vector of f32.
mlir::Value emitActivation(mlir::OpBuilder &builder, mlir::Location loc,
                           llm::ActivationKind kind, mlir::Value x);

class Emitter {
public:
  Emitter(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}

  mlir::Value index(int64_t value);
  mlir::Value f32(double value);
  mlir::OpFoldResult size(mlir::Value tensor, int64_t dim);
  llvm::SmallVector<mlir::OpFoldResult> sizes(mlir::Value tensor);

  // A tensor of `type`; dynamic dimensions take their size from `sizes`.
  mlir::Value empty(mlir::RankedTensorType type,
                    llvm::ArrayRef<mlir::OpFoldResult> sizes);
  mlir::Value empty(mlir::Type element,
                    llvm::ArrayRef<mlir::OpFoldResult> sizes);
  mlir::Value filled(double value, llvm::ArrayRef<mlir::OpFoldResult> sizes);

  // An operand of a loop nest: dimension i of `tensor` is loop `dims[i]`, or
  // element 0 where `dims[i]` is `kFirst`.
  static constexpr int64_t kFirst = -1;
  struct Operand {
    mlir::Value tensor;
    llvm::SmallVector<int64_t> dims;
  };

  // init[loops] = fn(operands...); every loop is a dimension of `init`, in
  // order.
  mlir::Value map(mlir::Value init, llvm::ArrayRef<Operand> operands,
                  ElementFn fn);
  // As above with operands that all have the shape of `init`.
  mlir::Value mapSame(mlir::Value init, mlir::ValueRange operands,
                      ElementFn fn);
  // init = fn(operands..., init) over `loops` loops; loops that are no
  // dimension of `init` are reduced.
  mlir::Value reduce(int64_t loops, Operand init,
                     llvm::ArrayRef<Operand> operands, ElementFn fn);
  // The same, with affine indexing maps.
  mlir::Value reduce(int64_t loops, Operand init, mlir::ValueRange operands,
                     llvm::ArrayRef<mlir::AffineMap> maps, ElementFn fn);

  // A slice of all dimensions but `dim`, which runs over `size` elements.
  mlir::Value slice(mlir::Value tensor, int64_t dim, int64_t offset,
                    int64_t size, int64_t stride = 1);
  mlir::Value insertSlice(mlir::Value source, mlir::Value into, int64_t dim,
                          int64_t offset, int64_t stride = 1);
  // `tensor[i]` with the leading dimension dropped.
  mlir::Value subtensor(mlir::Value tensor, mlir::Value i);

  mlir::Value convert(mlir::Value tensor, mlir::Type element);

  mlir::AffineMap mapOf(int64_t loops, llvm::ArrayRef<int64_t> dims);

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

// input [T, K] x weight [N, K]^T (+ bias [N]) in float32.
mlir::Value emitLinear(Emitter &e, mlir::Value input, mlir::Value weight,
                       mlir::Value bias);

// The gate and up halves of a packed tensor.
std::pair<mlir::Value, mlir::Value>
unpackGlu(Emitter &e, mlir::Value packed, llm::GluLayout layout, int64_t block);

// activation(gate) * up into `init`.
mlir::Value emitGlu(Emitter &e, llm::ActivationKind kind, mlir::Value gate,
                    mlir::Value up, mlir::Value init);

} // namespace llmc
