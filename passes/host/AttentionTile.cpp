#include "passes/host/AttentionTile.h"

#include "passes/linalg/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

// Below every score, yet finite: its difference from itself is 0, not NaN.
static constexpr double kLowest = -1e30;

AttentionTile::AttentionTile(OpBuilder &b, Entry &entry,
                             const AttentionShape &attention, VectorShape shape)
    : b(b), loc(entry.function.getLoc()), entry(entry), attention(attention),
      shape(shape), vectorType(VectorType::get({shape.lanes}, b.getF32Type())) {
  auto scratch = [&](ArrayRef<int64_t> sizes) -> Value {
    auto type = MemRefType::get(sizes, b.getF32Type());
    return memref::AllocaOp::create(b, loc, type, b.getI64IntegerAttr(64));
  };
  // Heads of a row lie one after the other.
  auto flat = [&](Value memref) -> Value {
    if (cast<MemRefType>(memref.getType()).getRank() == 2)
      return memref;
    return memref::CollapseShapeOp::create(
        b, loc, memref, ArrayRef<ReassociationIndices>{{0}, {1, 2}});
  };
  source = flat(entry.operandOf(attention.query));
  result = flat(entry.result(0));
  int64_t rows = attention.rowsPerTile();
  queries = scratch({rows, attention.headDim});
  keys = scratch({attention.headDim, attention.block});
  scores = scratch({rows, attention.block});
  outputs = scratch({rows, attention.valueDim});
  maxima = scratch({rows});
  totals = scratch({rows});
}

Value AttentionTile::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}
Value AttentionTile::add(Value l, Value r) {
  return arith::AddIOp::create(b, loc, l, r);
}
Value AttentionTile::sub(Value l, Value r) {
  return arith::SubIOp::create(b, loc, l, r);
}
Value AttentionTile::mul(Value l, Value r) {
  return arith::MulIOp::create(b, loc, l, r);
}

Value AttentionTile::loadIndex(Value array, ValueRange at) {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                    memref::LoadOp::create(b, loc, array, at));
}

Value AttentionTile::splat(Value scalar) {
  return vector::BroadcastOp::create(
      b, loc, VectorType::get({shape.lanes}, scalar.getType()), scalar);
}

Value AttentionTile::splat(double value) {
  return floatConstant(b, loc, vectorType, value);
}

void AttentionTile::forEach(Value end, int64_t step,
                            llvm::function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(b, loc, index(0), end, index(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

// Row r of the tile is head r % group of token r / group.
Value AttentionTile::tokenOf(Value row) {
  return add(begin,
             arith::DivUIOp::create(b, loc, row, index(attention.group)));
}

Value AttentionTile::headColumn(Value row, int64_t dim) {
  Value inGroup = arith::RemUIOp::create(b, loc, row, index(attention.group));
  return mul(add(mul(head, index(attention.group)), inGroup), index(dim));
}

void AttentionTile::emit(Value sequence, Value head, Value begin, Value end) {
  this->sequence = sequence;
  this->head = head;
  this->begin = begin;
  numRows = mul(sub(end, begin), index(attention.group));
  // Row t of the step stands at position t + offset of its sequence.
  const BatchRefs &batch = entry.batch();
  Value length = loadIndex(batch.kvLen, sequence);
  Value next = loadIndex(batch.queryStart, add(sequence, index(1)));
  offset = sub(length, next);
  numKeysTotal = attention.op.getCausal() ? add(end, offset) : length;

  loadQueries();
  emitPages();
  storeResults();
}

void AttentionTile::loadQueries() {
  double scale = attention.op.getScale().convertToDouble();
  Value sinks = attention.op.getSinks();
  forEach(numRows, 1, [&](Value row) {
    Value token = tokenOf(row), column = headColumn(row, attention.headDim);
    for (int64_t d = 0; d < attention.headDim; d += shape.lanes) {
      Value x = vector::LoadOp::create(
          b, loc, vectorType, source, ValueRange{token, add(column, index(d))});
      x = arith::MulFOp::create(b, loc, x, splat(scale));
      vector::StoreOp::create(b, loc, x, queries, ValueRange{row, index(d)});
    }
    for (int64_t d = 0; d < attention.valueDim; d += shape.lanes)
      vector::StoreOp::create(b, loc, splat(0.0), outputs,
                              ValueRange{row, index(d)});
    // A sink is a score that has been seen already and weighs no value.
    Value max = floatConstant(b, loc, b.getF32Type(), kLowest);
    if (sinks)
      max = memref::LoadOp::create(b, loc, entry.operandOf(sinks),
                                   ValueRange{headColumn(row, 1)});
    memref::StoreOp::create(b, loc, max, maxima, ValueRange{row});
    memref::StoreOp::create(
        b, loc, floatConstant(b, loc, b.getF32Type(), sinks ? 1.0 : 0.0),
        totals, ValueRange{row});
  });
}

void AttentionTile::emitPages() {
  Value block = index(attention.block);
  Value first = index(0);
  if (auto window = attention.op.getWindow()) {
    Value key = sub(add(begin, offset), index(int64_t(*window) - 1));
    key = arith::MaxSIOp::create(b, loc, key, first);
    first = arith::DivUIOp::create(b, loc, key, block);
  }
  Value last = arith::CeilDivUIOp::create(b, loc, numKeysTotal, block);
  auto loop = scf::ForOp::create(b, loc, first, last, index(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  attendPage(loop.getInductionVar());
}

void AttentionTile::attendPage(Value page) {
  Value pageId =
      loadIndex(entry.batch().blockTable, ValueRange{sequence, page});
  Value firstKey = mul(page, index(attention.block));
  Value numKeys = arith::MinUIOp::create(b, loc, sub(numKeysTotal, firstKey),
                                         index(attention.block));
  transposeKeys(pageId);
  scorePage();
  forEach(numRows, 1, [&](Value row) { softmaxRow(row, firstKey); });
  accumulateValues(pageId, numKeys);
}

// lanes x lanes elements at a time: log2(lanes) rounds that interleave row i
// with row i + lanes / 2.
void AttentionTile::transposeKeys(Value pageId) {
  Value pool = entry.pools(attention.kvOperand).front();
  Type element = cast<MemRefType>(pool.getType()).getElementType();
  int64_t lanes = shape.lanes;
  SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < lanes / 2; ++i) {
    low.append({i, i + lanes});
    high.append({i + lanes / 2, i + lanes / 2 + lanes});
  }
  forEach(index(attention.block), lanes, [&](Value key) {
    forEach(index(attention.headDim), lanes, [&](Value d) {
      SmallVector<Value> rows;
      for (int64_t i = 0; i < lanes; ++i) {
        Value row = vector::LoadOp::create(
            b, loc, VectorType::get({lanes}, element), pool,
            ValueRange{pageId, head, add(key, index(i)), d});
        rows.push_back(convertElement(b, loc, row, vectorType));
      }
      for (int64_t round = 1; round < lanes; round *= 2) {
        SmallVector<Value> next;
        for (int64_t i = 0; i < lanes / 2; ++i)
          for (ArrayRef<int64_t> half : {ArrayRef(low), ArrayRef(high)})
            next.push_back(vector::ShuffleOp::create(
                b, loc, rows[i], rows[i + lanes / 2], half));
        rows = std::move(next);
      }
      for (auto [i, row] : llvm::enumerate(rows))
        vector::StoreOp::create(b, loc, row, keys,
                                ValueRange{add(d, index(i)), key});
    });
  });
}

// Sizes of row blocks so that rows times vectors fit the registers.
static SmallVector<int64_t> rowBlocks(int64_t most) {
  SmallVector<int64_t> sizes;
  for (int64_t size : {6, 4, 3, 2, 1})
    if (size <= most)
      sizes.push_back(size);
  return sizes;
}

void AttentionTile::scorePage() {
  int64_t vectors =
      std::min(attention.block / shape.lanes, shape.accumulators / 6);
  forEach(index(attention.block), vectors * shape.lanes, [&](Value column) {
    forRowBlocks(
        b, loc, index(0), numRows, rowBlocks(6),
        [&](Value row, int64_t blockRows) {
          Product product{
              queries, row, blockRows, keys, {}, {}, index(attention.headDim)};
          for (int64_t v = 0; v < vectors; ++v)
            product.columns.push_back(add(column, index(v * shape.lanes)));
          for (auto [r, sums] :
               llvm::enumerate(emitProduct(b, loc, product, shape)))
            for (auto [v, sum] : llvm::enumerate(sums))
              vector::StoreOp::create(
                  b, loc, sum, scores,
                  ValueRange{add(row, index(r)), product.columns[v]});
        });
  });
}

// softcap, alibi and masks of `lanes` scores from key `firstKey` on.
Value AttentionTile::scoreVector(Value score, Value row, Value firstKey) {
  PagedAttentionOp op = attention.op;
  if (auto softcap = op.getSoftcap()) {
    double cap = softcap->convertToDouble();
    score = arith::MulFOp::create(b, loc, score, splat(1.0 / cap));
    score = arith::MulFOp::create(b, loc, math::TanhOp::create(b, loc, score),
                                  splat(cap));
  }
  auto i32Vector = VectorType::get({shape.lanes}, b.getI32Type());
  SmallVector<int32_t> lanes =
      llvm::to_vector(llvm::seq<int32_t>(0, shape.lanes));
  Value iota = arith::ConstantOp::create(
      b, loc, DenseIntElementsAttr::get(i32Vector, lanes));
  auto toI32 = [&](Value value) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), value);
  };
  // Key position less query position.
  Value position = add(tokenOf(row), offset);
  Value distance = arith::AddIOp::create(
      b, loc, splat(toI32(sub(firstKey, position))), iota);
  if (op.getAlibiSlopes()) {
    Value slope =
        memref::LoadOp::create(b, loc, entry.operandOf(op.getAlibiSlopes()),
                               ValueRange{headColumn(row, 1)});
    Value bias = arith::MulFOp::create(
        b, loc, splat(slope),
        arith::SIToFPOp::create(b, loc, vectorType, distance));
    score = arith::AddFOp::create(b, loc, score, bias);
  }
  Value masked = splat(-std::numeric_limits<double>::infinity());
  auto mask = [&](arith::CmpIPredicate predicate, Value bound) {
    Value out =
        arith::CmpIOp::create(b, loc, predicate, distance, splat(toI32(bound)));
    score = arith::SelectOp::create(b, loc, out, masked, score);
  };
  if (op.getCausal())
    mask(arith::CmpIPredicate::sgt, index(0));
  else // keys past the end of the sequence are rubbish
    mask(arith::CmpIPredicate::sge, sub(numKeysTotal, position));
  if (auto window = op.getWindow())
    mask(arith::CmpIPredicate::sle, index(-int64_t(*window)));
  return score;
}

void AttentionTile::softmaxRow(Value row, Value firstKey) {
  SmallVector<Value> values, columns;
  Value top = splat(kLowest);
  for (int64_t c = 0; c < attention.block; c += shape.lanes) {
    columns.push_back(index(c));
    Value score = vector::LoadOp::create(b, loc, vectorType, scores,
                                         ValueRange{row, columns.back()});
    values.push_back(scoreVector(score, row, add(firstKey, columns.back())));
    top = arith::MaxNumFOp::create(b, loc, top, values.back());
  }
  Value before = memref::LoadOp::create(b, loc, maxima, ValueRange{row});
  Value largest =
      vector::ReductionOp::create(b, loc, vector::CombiningKind::MAXNUMF, top);
  largest = arith::MaxNumFOp::create(b, loc, before, largest);
  Value total = splat(0.0);
  for (auto [value, column] : llvm::zip_equal(values, columns)) {
    Value weight = math::ExpOp::create(
        b, loc, arith::SubFOp::create(b, loc, value, splat(largest)));
    vector::StoreOp::create(b, loc, weight, scores, ValueRange{row, column});
    total = arith::AddFOp::create(b, loc, total, weight);
  }
  // What was summed before was relative to the old maximum.
  Value shrink = math::ExpOp::create(
      b, loc, arith::SubFOp::create(b, loc, before, largest));
  Value sum = vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD,
                                          total, arith::FastMathFlags::reassoc);
  Value old = memref::LoadOp::create(b, loc, totals, ValueRange{row});
  sum = arith::AddFOp::create(b, loc, sum,
                              arith::MulFOp::create(b, loc, old, shrink));
  memref::StoreOp::create(b, loc, sum, totals, ValueRange{row});
  memref::StoreOp::create(b, loc, largest, maxima, ValueRange{row});
  for (int64_t d = 0; d < attention.valueDim; d += shape.lanes) {
    Value at = index(d);
    Value output = vector::LoadOp::create(b, loc, vectorType, outputs,
                                          ValueRange{row, at});
    output = arith::MulFOp::create(b, loc, output, splat(shrink));
    vector::StoreOp::create(b, loc, output, outputs, ValueRange{row, at});
  }
}

// Only keys that exist: a weight of 0 does not hide a NaN.
void AttentionTile::accumulateValues(Value pageId, Value numKeys) {
  Value pool = entry.pools(attention.kvOperand).back();
  int64_t vectors =
      std::min(attention.valueDim / shape.lanes, shape.accumulators / 6);
  while ((attention.valueDim / shape.lanes) % vectors)
    --vectors;
  forEach(index(attention.valueDim), vectors * shape.lanes, [&](Value column) {
    forRowBlocks(
        b, loc, index(0), numRows, rowBlocks(6),
        [&](Value row, int64_t blockRows) {
          Product product{scores,         row, blockRows, pool,
                          {pageId, head}, {},  numKeys};
          for (int64_t v = 0; v < vectors; ++v)
            product.columns.push_back(add(column, index(v * shape.lanes)));
          Sums init(blockRows);
          for (int64_t r = 0; r < blockRows; ++r)
            for (Value at : product.columns)
              init[r].push_back(
                  vector::LoadOp::create(b, loc, vectorType, outputs,
                                         ValueRange{add(row, index(r)), at}));
          for (auto [r, sums] :
               llvm::enumerate(emitProduct(b, loc, product, shape, init)))
            for (auto [v, sum] : llvm::enumerate(sums))
              vector::StoreOp::create(
                  b, loc, sum, outputs,
                  ValueRange{add(row, index(r)), product.columns[v]});
        });
  });
}

void AttentionTile::storeResults() {
  forEach(numRows, 1, [&](Value row) {
    Value total = memref::LoadOp::create(b, loc, totals, ValueRange{row});
    Value one = floatConstant(b, loc, b.getF32Type(), 1.0);
    Value scale = splat(arith::DivFOp::create(b, loc, one, total).getResult());
    Value token = tokenOf(row), column = headColumn(row, attention.valueDim);
    for (int64_t d = 0; d < attention.valueDim; d += shape.lanes) {
      Value output = vector::LoadOp::create(b, loc, vectorType, outputs,
                                            ValueRange{row, index(d)});
      output = arith::MulFOp::create(b, loc, output, scale);
      vector::StoreOp::create(b, loc, output, result,
                              ValueRange{token, add(column, index(d))});
    }
  });
}
