#include "input_writer.h"

#include <algorithm>

namespace llmc {

InputWriter::InputWriter(const StepInputs &inputs, std::byte *block)
    : inputs_(inputs), block_(block),
      table_rows_(static_cast<size_t>(inputs.max_sequences())) {}

void InputWriter::write(const Batch &batch, const KvCacheManager &kv_cache) {
  auto *tokens = data<int32_t>(StepInput::Tokens);
  auto *positions = data<int32_t>(StepInput::Positions);
  auto *slots = data<int32_t>(StepInput::Slots);
  auto *query_start = data<int32_t>(StepInput::QueryStart);
  auto *kv_len = data<int32_t>(StepInput::KvLen);
  int row = 0;
  for (size_t i = 0; i < batch.entries.size(); ++i) {
    const BatchEntry &entry = batch.entries[i];
    const Sequence &sequence = *entry.sequence;
    query_start[i] = row;
    kv_len[i] = sequence.num_computed_tokens + entry.num_tokens;
    write_table_row(i, sequence.blocks);
    for (int position = sequence.num_computed_tokens,
             end = position + entry.num_tokens;
         position < end; ++position, ++row) {
      tokens[row] = sequence.tokens[static_cast<size_t>(position)];
      positions[row] = position;
      slots[row] = kv_cache.slot(sequence, position);
    }
  }
  query_start[batch.entries.size()] = row;
  write_sampling(batch);
}

// A decode changes its row once in block_size steps, and the table is by far
// the largest input.
void InputWriter::write_table_row(size_t row, const BlockTable &blocks) {
  TableRow &there = table_rows_[row];
  if (there.version == blocks.version())
    return;
  auto *target =
      data<int32_t>(StepInput::BlockTable) +
      static_cast<ptrdiff_t>(row) * ptrdiff_t{inputs_.max_blocks_per_seq()};
  std::copy(blocks.begin(), blocks.end(), target);
  if (there.size > blocks.size())
    std::fill(target + blocks.size(), target + there.size, 0);
  there = {blocks.version(), blocks.size()};
}

void InputWriter::write_sampling(const Batch &batch) {
  static const SamplingParams greedy = [] {
    SamplingParams params;
    params.temperature = 0;
    return params;
  }();
  auto *logit_rows = data<int32_t>(StepInput::LogitRows);
  auto *temperature = data<float>(StepInput::Temperature);
  auto *top_p = data<float>(StepInput::TopP);
  auto *min_p = data<float>(StepInput::MinP);
  auto *top_k = data<int32_t>(StepInput::TopK);
  auto *seed = data<uint64_t>(StepInput::Seed);
  auto *sample_index = data<uint32_t>(StepInput::SampleIndex);
  for (size_t i = 0; i < batch.logit_rows.size(); ++i) {
    const LogitRow &want = batch.logit_rows[i];
    const SamplingParams &params = want.params ? *want.params : greedy;
    logit_rows[i] = want.row;
    temperature[i] = params.temperature;
    top_p[i] = params.top_p;
    min_p[i] = params.min_p;
    top_k[i] = params.top_k;
    seed[i] = params.seed;
    sample_index[i] = want.sample_index;
  }
}

// Padding is sequences of one token of id 0 in block 0, which belongs to
// nobody: for a kernel they are like all others, so it needs no mask, and each
// of them writes the same K and V to the same slot. Nobody reads their results.
void InputWriter::pad(int num_sequences, int rows) {
  auto fill = [&]<class T>(StepInput input, T value) {
    T *values = data<T>(input);
    std::fill(values + num_sequences, values + rows, value);
  };
  fill(StepInput::Tokens, int32_t{0});
  fill(StepInput::Positions, int32_t{0});
  fill(StepInput::Slots, int32_t{0});
  fill(StepInput::KvLen, int32_t{1});
  fill(StepInput::Temperature, 0.0f);
  fill(StepInput::TopP, 1.0f);
  fill(StepInput::MinP, 0.0f);
  fill(StepInput::TopK, int32_t{0});
  fill(StepInput::Seed, uint64_t{0});
  fill(StepInput::SampleIndex, int32_t{0});
  auto *logit_rows = data<int32_t>(StepInput::LogitRows);
  auto *query_start = data<int32_t>(StepInput::QueryStart);
  for (int row = num_sequences; row < rows; ++row) {
    logit_rows[row] = row;
    query_start[row + 1] = row + 1;
  }
  for (int row = num_sequences; row < rows; ++row)
    write_table_row(static_cast<size_t>(row), {});
}

} // namespace llmc
