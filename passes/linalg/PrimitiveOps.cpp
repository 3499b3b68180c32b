#include "passes/linalg/Patterns.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

using Values = SmallVector<Value>;

static Values lowerReduce(ReduceOp op, ReduceOp::Adaptor in, Emitter &e) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  int64_t rank = type.getRank();
  SmallVector<OpFoldResult> sizes = e.sizes(in.getInput());
  SmallVector<int64_t> inputDims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  SmallVector<int64_t> keptDims = inputDims;
  Value count;
  for (int64_t dim : op.getDims()) {
    Value size = getValueOrCreateConstantIndexOp(e.builder, e.loc, sizes[dim]);
    count =
        count ? arith::MulIOp::create(e.builder, e.loc, count, size).getResult()
              : size;
    sizes[dim] = e.builder.getIndexAttr(1);
    keptDims[dim] = Emitter::kFirst;
  }
  bool isMax = op.getKind() == ReduceKind::Max;
  Value init =
      e.filled(isMax ? -std::numeric_limits<double>::infinity() : 0.0, sizes);
  Value result =
      e.reduce(rank, {init, keptDims},
               ArrayRef<Emitter::Operand>{{in.getInput(), inputDims}},
               [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                 if (isMax)
                   return arith::MaximumFOp::create(b, loc, v[0], v[1]);
                 return arith::AddFOp::create(b, loc, v[0], v[1]);
               });
  if (op.getKind() == ReduceKind::Mean && count) {
    Value n = arith::IndexCastOp::create(e.builder, e.loc,
                                         e.builder.getI64Type(), count);
    n = arith::SIToFPOp::create(e.builder, e.loc, e.builder.getF32Type(), n);
    result = e.mapSame(result, result,
                       [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                         return arith::DivFOp::create(b, loc, v[0], n);
                       });
  }
  return {e.convert(result, op.getType().getElementType())};
}

static Values lowerBroadcast(BroadcastOp op, BroadcastOp::Adaptor in,
                             Emitter &e) {
  auto from = cast<RankedTensorType>(op.getInput().getType());
  auto to = cast<RankedTensorType>(op.getType());
  int64_t lead = to.getRank() - from.getRank();
  SmallVector<OpFoldResult> sizes;
  SmallVector<int64_t> dims;
  auto given = in.getSizes().begin();
  for (int64_t i = 0; i < to.getRank(); ++i) {
    int64_t source = i - lead;
    if (source >= 0)
      dims.push_back(from.getDimSize(source) == 1 && to.getDimSize(i) != 1
                         ? Emitter::kFirst
                         : i);
    if (!to.isDynamicDim(i))
      sizes.push_back(e.builder.getIndexAttr(to.getDimSize(i)));
    else if (source >= 0 && from.isDynamicDim(source))
      sizes.push_back(e.size(in.getInput(), source));
    else
      sizes.push_back(OpFoldResult(*given++));
  }
  Value init = e.empty(to, sizes);
  return {e.map(init, {{in.getInput(), dims}},
                [&](OpBuilder &b, Location loc, ValueRange v) {
                  return convertElement(b, loc, v[0], to.getElementType());
                })};
}

static Values lowerTranspose(TransposeOp op, TransposeOp::Adaptor in,
                             Emitter &e) {
  SmallVector<OpFoldResult> from = e.sizes(in.getInput()), sizes;
  // Dimension permutation[i] of the input is loop i.
  SmallVector<int64_t> dims(from.size());
  for (auto [i, source] : llvm::enumerate(op.getPermutation())) {
    sizes.push_back(from[source]);
    dims[source] = i;
  }
  Value init = e.empty(cast<RankedTensorType>(op.getType()), sizes);
  return {e.map(init, {{in.getInput(), dims}},
                [](OpBuilder &, Location, ValueRange v) { return v[0]; })};
}

static Values lowerMatmul(MatmulOp op, MatmulOp::Adaptor in, Emitter &e) {
  auto type = cast<RankedTensorType>(op.getType());
  int64_t rank = type.getRank(), m = rank - 2, n = rank - 1, k = rank;
  SmallVector<OpFoldResult> sizes = e.sizes(in.getLhs());
  sizes[n] = e.size(in.getRhs(), n);
  SmallVector<int64_t> result = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  SmallVector<int64_t> lhs = result, rhs = result;
  lhs[n] = k;
  rhs[m] = k;
  rhs[n] = n;
  Value product = e.reduce(
      rank + 1, {e.filled(0.0, sizes), result},
      ArrayRef<Emitter::Operand>{{in.getLhs(), lhs}, {in.getRhs(), rhs}},
      [](OpBuilder &b, Location loc, ValueRange v) -> Value {
        return arith::AddFOp::create(b, loc, v[2],
                                     arith::MulFOp::create(b, loc, v[0], v[1]));
      });
  return {e.convert(product, type.getElementType())};
}

void llmc::populatePrimitiveLowerings(RewritePatternSet &patterns) {
  addLowering<ReduceOp, lowerReduce>(patterns);
  addLowering<BroadcastOp, lowerBroadcast>(patterns);
  addLowering<TransposeOp, lowerTranspose>(patterns);
  addLowering<MatmulOp, lowerMatmul>(patterns);
}
