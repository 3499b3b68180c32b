#pragma once
// Fills the staging block of a step; see step_inputs.h for the layout.

#include "batch.h"
#include "kv_cache_manager.h"
#include "step_inputs.h"

#include <vector>

namespace llmc {

// The only one that writes to its block: it knows which rows of the block
// table stand there already.
class InputWriter {
public:
  // `block` is zero and has room for inputs.bytes().
  InputWriter(const StepInputs &inputs, std::byte *block);

  void write(const Batch &batch, const KvCacheManager &kv_cache);

  // Makes a step of `num_sequences` sequences with one token and one logit row
  // each one of `rows`.
  void pad(int num_sequences, int rows);

private:
  struct TableRow {
    uint64_t version = 0; // of the table that stands there
    size_t size = 0;      // blocks; the rest of the row is zero
  };

  template <class T> T *data(StepInput input) const {
    return inputs_.data<T>(block_, input);
  }
  void write_table_row(size_t row, const BlockTable &blocks);
  void write_sampling(const Batch &batch);

  const StepInputs &inputs_;
  std::byte *const block_;
  std::vector<TableRow> table_rows_;
};

} // namespace llmc
