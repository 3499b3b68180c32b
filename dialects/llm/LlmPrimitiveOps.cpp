//===- LlmPrimitiveOps.cpp - what imported graphs are made of -------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmVerify.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace llmc::llm;

//===----------------------------------------------------------------------===//
// reduce
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::verify() {
  RankedTensorType input = tensorType(getInput());
  if (failed(checkRank(*this, getResult(), "the result", input.getRank())))
    return failure();
  llvm::SmallDenseSet<int64_t> reduced;
  for (int64_t dim : getDims())
    if (dim < 0 || dim >= input.getRank() || !reduced.insert(dim).second)
      return emitOpError() << "expected distinct dims in [0, "
                           << input.getRank() << "), got " << getDims();
  for (int64_t dim = 0; dim < input.getRank(); ++dim)
    if (failed(checkSize(*this, getResult(), "the result", dim,
                         reduced.contains(dim) ? 1 : input.getDimSize(dim),
                         reduced.contains(dim) ? "reduced" : "kept")))
      return failure();
  return success();
}

OpFoldResult ReduceOp::fold(FoldAdaptor) {
  RankedTensorType input = tensorType(getInput());
  if (input != getType())
    return {};
  // Every kind is the identity on dimensions of size 1.
  if (llvm::all_of(getDims(),
                   [&](int64_t dim) { return input.getDimSize(dim) == 1; }))
    return getInput();
  return {};
}

//===----------------------------------------------------------------------===//
// broadcast
//===----------------------------------------------------------------------===//

LogicalResult BroadcastOp::verify() {
  RankedTensorType input = tensorType(getInput()), result = getType();
  if (input.getElementType() != result.getElementType())
    return emitOpError() << "expected equal element types, got " << input
                         << " and " << result;
  int64_t lead = result.getRank() - input.getRank();
  if (lead < 0)
    return emitOpError() << "expected a result of rank " << input.getRank()
                         << " or more, got " << result;
  size_t neededSizes = 0;
  for (int64_t dim = 0; dim < result.getRank(); ++dim) {
    int64_t from = dim < lead ? 1 : input.getDimSize(dim - lead);
    int64_t to = result.getDimSize(dim);
    if (from != 1 && from != to)
      return emitOpError() << "cannot repeat dimension " << dim - lead
                           << " of size " << sizeText(from) << " to "
                           << sizeText(to);
    neededSizes += from == 1 && ShapedType::isDynamic(to);
  }
  if (getSizes().size() != neededSizes)
    return emitOpError() << "expected " << neededSizes
                         << " sizes, one for each dynamic dimension that the "
                            "input does not give, got "
                         << getSizes().size();
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType() && getSizes().empty())
    return getInput();
  return {};
}

//===----------------------------------------------------------------------===//
// transpose
//===----------------------------------------------------------------------===//

LogicalResult TransposeOp::verify() {
  RankedTensorType input = tensorType(getInput()), result = getType();
  ArrayRef<int64_t> permutation = getPermutation();
  SmallVector<int64_t> sorted(permutation);
  llvm::sort(sorted);
  if (sorted != llvm::to_vector(llvm::seq<int64_t>(0, input.getRank())))
    return emitOpError() << "expected a permutation of 0.."
                         << input.getRank() - 1 << ", got " << permutation;
  if (failed(checkRank(*this, getResult(), "the result", input.getRank())))
    return failure();
  if (input.getElementType() != result.getElementType())
    return emitOpError() << "expected equal element types, got " << input
                         << " and " << result;
  for (auto [dim, source] : llvm::enumerate(permutation))
    if (failed(checkSize(*this, getResult(), "the result", dim,
                         input.getDimSize(source), "permuted input")))
      return failure();
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType() && llvm::is_sorted(getPermutation()))
    return getInput();
  // Two transposes that undo each other.
  auto inner = getInput().getDefiningOp<TransposeOp>();
  if (!inner || inner.getInput().getType() != getType())
    return {};
  for (auto [dim, source] : llvm::enumerate(getPermutation()))
    if (inner.getPermutation()[source] != int64_t(dim))
      return {};
  return inner.getInput();
}

//===----------------------------------------------------------------------===//
// matmul
//===----------------------------------------------------------------------===//

LogicalResult MatmulOp::verify() {
  RankedTensorType lhs = tensorType(getLhs()), rhs = tensorType(getRhs());
  int64_t rank = lhs.getRank();
  if (rank < 2 || rhs.getRank() != rank)
    return emitOpError() << "expected operands of one rank of 2 or more, got "
                         << lhs << " and " << rhs;
  if (failed(checkRank(*this, getResult(), "the result", rank)))
    return failure();
  for (int64_t dim = 0; dim < rank - 2; ++dim)
    if (failed(checkSize(*this, getRhs(), "rhs", dim, lhs.getDimSize(dim),
                         "batch of lhs")) ||
        failed(checkSize(*this, getResult(), "the result", dim,
                         lhs.getDimSize(dim), "batch of lhs")))
      return failure();
  if (failed(checkSize(*this, getRhs(), "rhs", rank - 2,
                       lhs.getDimSize(rank - 1), "K of lhs")) ||
      failed(checkSize(*this, getResult(), "the result", rank - 2,
                       lhs.getDimSize(rank - 2), "M of lhs")) ||
      failed(checkSize(*this, getResult(), "the result", rank - 1,
                       rhs.getDimSize(rank - 1), "N of rhs")))
    return failure();
  return success();
}
