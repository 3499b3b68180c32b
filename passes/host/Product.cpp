#include "passes/host/Product.h"

#include "passes/linalg/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace llmc;

// So many sums in registers hide the latency of memory; fewer ask ahead for it.
static constexpr int64_t kWantedSums = 8;

static constexpr int64_t kCacheLine = 64;

static Value index(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Sums llmc::emitProduct(OpBuilder &b, Location loc, const Product &product,
                       VectorShape shape, const Sums &init) {
  int64_t numRows = product.numRows, vectors = product.columns.size(),
          perElement = product.perElement;
  Type element = cast<MemRefType>(product.b.getType()).getElementType();
  auto sumType = VectorType::get({shape.lanes}, b.getF32Type());
  auto loadType = VectorType::get({shape.lanes}, element);

  SmallVector<Value> rows;
  for (int64_t r = 0; r < numRows; ++r)
    rows.push_back(
        arith::AddIOp::create(b, loc, product.row, index(b, loc, r)));
  Value zero = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(sumType, b.getF32FloatAttr(0.0f)));
  SmallVector<Value> start(numRows * vectors, zero);
  for (auto [r, row] : llvm::enumerate(init))
    llvm::copy(row, start.begin() + r * vectors);

  // One request for each cache line of a k.
  auto prefetch = [&](OpBuilder &b, Location loc, Value row) {
    Value ahead = arith::AddIOp::create(
        b, loc, row, index(b, loc, product.prefetchDistance));
    int64_t vectorBytes = shape.lanes * element.getIntOrFloatBitWidth() / 8;
    for (auto [v, column] : llvm::enumerate(product.columns)) {
      if (v * vectorBytes % kCacheLine)
        continue;
      SmallVector<Value> at(product.leading);
      at.append({ahead, column});
      memref::PrefetchOp::create(b, loc, product.b, at, /*isWrite=*/false,
                                 /*localityHint=*/3, /*isDataCache=*/true);
    }
  };
  // The row of `b` that holds k.
  auto rowOfB = [&](OpBuilder &b, Location loc, Value k) -> Value {
    if (perElement == 1)
      return k;
    return arith::DivUIOp::create(b, loc, k, index(b, loc, perElement));
  };
  auto weightAt = [&](OpBuilder &b, Location loc, ValueRange at,
                      int64_t half) -> Value {
    Value stored = vector::LoadOp::create(b, loc, loadType, product.b, at);
    if (perElement == 1)
      return convertElement(b, loc, stored, sumType);
    // The half of a byte that is wanted moves to its top, and back with sign.
    auto wide = VectorType::get({shape.lanes}, b.getI32Type());
    auto bits = [&](int32_t count) -> Value {
      return arith::ConstantOp::create(
          b, loc,
          DenseElementsAttr::get(wide, b.getI32IntegerAttr(count).getValue()));
    };
    Value code = arith::ExtSIOp::create(b, loc, wide, stored);
    if (half == 0)
      code = arith::ShLIOp::create(b, loc, code, bits(28));
    code = arith::ShRSIOp::create(b, loc, code, bits(half == 0 ? 28 : 4));
    return arith::SIToFPOp::create(b, loc, sumType, code);
  };
  auto inputAt = [&](OpBuilder &b, Location loc, Value row, Value k) -> Value {
    Value x = memref::LoadOp::create(b, loc, product.a, ValueRange{row, k});
    if (!product.valuesOfA)
      return x;
    Value code = arith::BitcastOp::create(b, loc, b.getI8Type(), x);
    code = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), code);
    return memref::LoadOp::create(b, loc, product.valuesOfA, code);
  };
  // Adds the products of k + half; k is even where two share a row of `b`.
  auto step = [&](OpBuilder &b, Location loc, Value k, int64_t half,
                  MutableArrayRef<Value> sums) {
    Value rowB = rowOfB(b, loc, k);
    SmallVector<Value> weights;
    for (auto [v, column] : llvm::enumerate(product.columns)) {
      SmallVector<Value> at(product.leading);
      at.append({rowB, column});
      Value weight = weightAt(b, loc, at, half);
      if (!product.zeros.empty())
        weight = arith::SubFOp::create(b, loc, weight, product.zeros[v]);
      weights.push_back(weight);
    }
    Value kA =
        half ? arith::AddIOp::create(b, loc, k, index(b, loc, half)).getResult()
             : k;
    for (int64_t r = 0; r < numRows; ++r) {
      Value splat = vector::BroadcastOp::create(b, loc, sumType,
                                                inputAt(b, loc, rows[r], kA));
      for (int64_t v = 0; v < vectors; ++v)
        sums[r * vectors + v] = vector::FMAOp::create(b, loc, splat, weights[v],
                                                      sums[r * vectors + v]);
    }
  };
  Value begin = product.begin ? product.begin : index(b, loc, 0);
  auto loop = scf::ForOp::create(
      b, loc, begin, product.depth, index(b, loc, perElement), start,
      [&](OpBuilder &b, Location loc, Value k, ValueRange state) {
        SmallVector<Value> sums(state);
        if (product.prefetchDistance && numRows * vectors < kWantedSums)
          prefetch(b, loc, rowOfB(b, loc, k));
        for (int64_t half = 0; half < perElement; ++half)
          step(b, loc, k, half, sums);
        scf::YieldOp::create(b, loc, sums);
      });

  Sums result(numRows);
  for (int64_t r = 0; r < numRows; ++r)
    for (int64_t v = 0; v < vectors; ++v)
      result[r].push_back(loop.getResult(r * vectors + v));
  return result;
}

void llmc::forRowBlocks(OpBuilder &b, Location loc, Value begin, Value end,
                        ArrayRef<int64_t> sizes,
                        llvm::function_ref<void(Value, int64_t)> body) {
  for (int64_t size : sizes) {
    Value step = index(b, loc, size);
    Value left = arith::SubIOp::create(b, loc, end, begin);
    Value blocks = arith::DivUIOp::create(b, loc, left, step);
    Value covered = arith::AddIOp::create(
        b, loc, begin, arith::MulIOp::create(b, loc, blocks, step));
    auto loop = scf::ForOp::create(b, loc, begin, covered, step);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar(), size);
    begin = covered;
  }
}
