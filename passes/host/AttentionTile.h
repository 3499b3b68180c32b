// Attention of a block of query rows of one sequence and one KV head: online
// softmax over the pages of the cache.
#pragma once

#include "passes/host/AttentionShape.h"
#include "passes/host/Entry.h"
#include "passes/host/Product.h"

namespace llmc {

class AttentionTile {
public:
  // Makes the scratch memory of the tile; call at the function's entry.
  AttentionTile(mlir::OpBuilder &b, Entry &entry,
                const AttentionShape &attention, VectorShape shape);

  // Rows `begin` to `end` of the step, all of sequence `sequence`, for KV head
  // `head`.
  void emit(mlir::Value sequence, mlir::Value head, mlir::Value begin,
            mlir::Value end);

private:
  void loadQueries();
  void emitPages();
  void attendPage(mlir::Value page);
  void transposeKeys(mlir::Value pageId);
  void scorePage();
  void softmaxRow(mlir::Value row, mlir::Value firstKey);
  mlir::Value scoreVector(mlir::Value score, mlir::Value row,
                          mlir::Value firstKey);
  void accumulateValues(mlir::Value pageId, mlir::Value numKeys);
  void storeResults();

  mlir::Value index(int64_t value);
  mlir::Value add(mlir::Value l, mlir::Value r);
  mlir::Value sub(mlir::Value l, mlir::Value r);
  mlir::Value mul(mlir::Value l, mlir::Value r);
  mlir::Value loadIndex(mlir::Value array, mlir::ValueRange at);
  mlir::Value splat(mlir::Value scalar);
  mlir::Value splat(double value);
  void forEach(mlir::Value end, int64_t step,
               llvm::function_ref<void(mlir::Value)> body);
  // Column of `head`'s `dim`-wide slice for row `row` of the tile.
  mlir::Value headColumn(mlir::Value row, int64_t dim);
  mlir::Value tokenOf(mlir::Value row);

  mlir::OpBuilder &b;
  mlir::Location loc;
  Entry &entry;
  AttentionShape attention;
  VectorShape shape;
  mlir::VectorType vectorType;
  // Queries and results, [rows, heads * dim].
  mlir::Value source, result;
  // Scratch: scaled queries, keys of a page [dim, block], scores and weights,
  // sums of weighted values; largest score and sum of weights of each row.
  mlir::Value queries, keys, scores, outputs, maxima, totals;
  // The block of rows at work.
  mlir::Value sequence, head, begin, numRows, offset, numKeysTotal;
};

} // namespace llmc
