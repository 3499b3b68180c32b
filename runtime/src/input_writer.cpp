#include "input_writer.h"

#include <algorithm>

namespace llmc {

void write_step_inputs(const StepInputs &inputs, std::byte *block,
                       const Batch &batch, const KvCacheManager &kv_cache) {
  const int64_t table_width = inputs.max_blocks_per_seq();
  auto *tokens = inputs.data<int32_t>(block, StepInput::Tokens);
  auto *positions = inputs.data<int32_t>(block, StepInput::Positions);
  auto *slots = inputs.data<int32_t>(block, StepInput::Slots);
  auto *query_start = inputs.data<int32_t>(block, StepInput::QueryStart);
  auto *kv_len = inputs.data<int32_t>(block, StepInput::KvLen);
  auto *table = inputs.data<int32_t>(block, StepInput::BlockTable);
  int row = 0;
  for (const BatchEntry &entry : batch.entries) {
    const Sequence &sequence = *entry.sequence;
    *query_start++ = row;
    *kv_len++ = sequence.num_computed_tokens + entry.num_tokens;
    std::copy(sequence.blocks.begin(), sequence.blocks.end(), table);
    std::fill(table + sequence.blocks.size(), table + table_width, 0);
    table += table_width;
    for (int position = sequence.num_computed_tokens,
             end = position + entry.num_tokens;
         position < end; ++position, ++row) {
      tokens[row] = sequence.tokens[static_cast<size_t>(position)];
      positions[row] = position;
      slots[row] = kv_cache.slot(sequence, position);
    }
  }
  *query_start = row;

  static const SamplingParams greedy = [] {
    SamplingParams params;
    params.temperature = 0;
    return params;
  }();
  auto *logit_rows = inputs.data<int32_t>(block, StepInput::LogitRows);
  auto *temperature = inputs.data<float>(block, StepInput::Temperature);
  auto *top_p = inputs.data<float>(block, StepInput::TopP);
  auto *min_p = inputs.data<float>(block, StepInput::MinP);
  auto *top_k = inputs.data<int32_t>(block, StepInput::TopK);
  auto *seed = inputs.data<uint64_t>(block, StepInput::Seed);
  auto *sample_index = inputs.data<uint32_t>(block, StepInput::SampleIndex);
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
void pad_step_inputs(const StepInputs &inputs, std::byte *block,
                     int num_sequences, int rows) {
  const int64_t table_width = inputs.max_blocks_per_seq();
  auto fill = [&]<class T>(StepInput input, T value) {
    T *data = inputs.data<T>(block, input);
    std::fill(data + num_sequences, data + rows, value);
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
  auto *logit_rows = inputs.data<int32_t>(block, StepInput::LogitRows);
  auto *query_start = inputs.data<int32_t>(block, StepInput::QueryStart);
  for (int row = num_sequences; row < rows; ++row) {
    logit_rows[row] = row;
    query_start[row + 1] = row + 1;
  }
  auto *table = inputs.data<int32_t>(block, StepInput::BlockTable);
  std::fill(table + ptrdiff_t{num_sequences} * table_width,
            table + ptrdiff_t{rows} * table_width, 0);
}

} // namespace llmc
