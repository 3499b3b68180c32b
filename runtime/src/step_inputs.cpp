#include "step_inputs.h"

namespace llmc {

namespace {

int64_t per_token(const Sizes &s) { return s.T; }
int64_t per_row(const Sizes &s) { return s.R; }
int64_t per_sequence(const Sizes &s) { return s.S; }
int64_t per_boundary(const Sizes &s) { return s.S + 1; }
int64_t per_table_entry(const Sizes &s) { return s.S * s.B; }

// In the order of the enum, which is the order in the block.
constexpr StepInputInfo kInputs[kNumStepInputs] = {
    {StepInput::Tokens, "tokens", DType::I32, per_token},
    {StepInput::Positions, "positions", DType::I32, per_token},
    {StepInput::LogitRows, "logit_rows", DType::I32, per_row},
    {StepInput::QueryStart, "query_start", DType::I32, per_boundary},
    {StepInput::KvLen, "kv_len", DType::I32, per_sequence},
    {StepInput::Slots, "slots", DType::I32, per_token},
    {StepInput::Temperature, "temperature", DType::F32, per_row},
    {StepInput::TopP, "top_p", DType::F32, per_row},
    {StepInput::MinP, "min_p", DType::F32, per_row},
    {StepInput::TopK, "top_k", DType::I32, per_row},
    {StepInput::Seed, "seed", DType::U64, per_row},
    {StepInput::SampleIndex, "sample_index", DType::I32, per_row},
    {StepInput::BlockTable, "block_table", DType::I32, per_table_entry},
};

constexpr size_t kAlignment = 256;

} // namespace

const StepInputInfo &info(StepInput input) {
  return kInputs[static_cast<int>(input)];
}

std::optional<StepInput> step_input_from_name(std::string_view name) {
  for (const StepInputInfo &row : kInputs)
    if (row.name == name)
      return row.id;
  return std::nullopt;
}

StepInputs::StepInputs(const Sizes &max_sizes)
    : max_blocks_per_seq_(max_sizes.B), max_sequences_(max_sizes.S) {
  for (const StepInputInfo &row : kInputs) {
    offsets_[static_cast<int>(row.id)] = bytes_;
    size_t size =
        static_cast<size_t>(row.elements(max_sizes)) * info(row.dtype).bytes;
    bytes_ += (size + kAlignment - 1) / kAlignment * kAlignment;
  }
}

size_t StepInputs::used_bytes(int64_t num_sequences) const {
  return offset(StepInput::BlockTable) +
         static_cast<size_t>(num_sequences * max_blocks_per_seq_) *
             sizeof(int32_t);
}

} // namespace llmc
