//===- Views.cpp - builds slices, transposes and reshapes -----------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/1_raise/Views.h"

#include "dialects/llm/LlmDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

bool llmc::isView(Operation *op) {
  return isa<tensor::ExtractSliceOp, tensor::ConcatOp, tensor::ExpandShapeOp,
             tensor::CollapseShapeOp, tensor::CastOp, llm::BroadcastOp,
             llm::TransposeOp>(op);
}

bool llmc::isElementwise(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumResults() == 1;
}

// Sizes of a tensor: static ones as attributes, dynamic ones as tensor.dim.
static OpFoldResult sizeOf(OpBuilder &builder, Location loc, Value tensor,
                           int64_t dim) {
  return tensor::getMixedSize(builder, loc, tensor, dim);
}

Value llmc::slice(OpBuilder &builder, Location loc, Value tensor,
                  ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes) {
  RankedTensorType type = typeOf(tensor);
  if (type.getShape() == sizes)
    return tensor;
  SmallVector<OpFoldResult> mixedSizes;
  for (auto [dim, size] : llvm::enumerate(sizes))
    mixedSizes.push_back(ShapedType::isDynamic(size)
                             ? sizeOf(builder, loc, tensor, dim)
                             : OpFoldResult(builder.getIndexAttr(size)));
  SmallVector<OpFoldResult> strides(sizes.size(), builder.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(
      builder, loc, RankedTensorType::get(sizes, type.getElementType()), tensor,
      getAsIndexOpFoldResult(builder.getContext(), offsets), mixedSizes,
      strides);
}

Value llmc::transpose(OpBuilder &builder, Location loc, Value tensor,
                      ArrayRef<int64_t> permutation) {
  if (llvm::is_sorted(permutation))
    return tensor;
  RankedTensorType type = typeOf(tensor);
  SmallVector<int64_t> shape;
  for (int64_t from : permutation)
    shape.push_back(type.getDimSize(from));
  return llm::TransposeOp::create(
      builder, loc, RankedTensorType::get(shape, type.getElementType()), tensor,
      permutation);
}

Value llmc::reshapeUnits(OpBuilder &builder, Location loc, Value tensor,
                         ArrayRef<int64_t> shape) {
  RankedTensorType type = typeOf(tensor);
  if (type.getShape() == shape)
    return tensor;
  auto result = RankedTensorType::get(shape, type.getElementType());
  std::optional<SmallVector<ReassociationIndices>> groups =
      getReassociationIndicesForReshape(type, result);
  assert(groups && "only dimensions of size 1 are added or dropped");
  if (shape.size() < size_t(type.getRank()))
    return tensor::CollapseShapeOp::create(builder, loc, result, tensor,
                                           *groups);
  SmallVector<OpFoldResult> sizes;
  for (auto [source, group] : llvm::enumerate(*groups))
    for (int64_t dim : group)
      sizes.push_back(ShapedType::isDynamic(shape[dim])
                          ? sizeOf(builder, loc, tensor, source)
                          : OpFoldResult(builder.getIndexAttr(shape[dim])));
  return tensor::ExpandShapeOp::create(builder, loc, result, tensor, *groups,
                                       sizes);
}
