#pragma once
// The inputs of a step: their names and shapes in the plan, and the fixed
// buffers that hold them.
//
// All inputs lie in one block with fixed offsets, mirrored between a host
// staging block and the device. One copy moves a step's inputs, and a captured
// step can be replayed because no address ever changes. The block table comes
// last: only the rows in use are copied.

#include "dtype.h"
#include "expr.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace llmc {

enum class StepInput {
  Tokens,
  Positions,
  LogitRows,
  QueryStart,
  KvLen,
  Slots,
  Temperature,
  TopP,
  MinP,
  TopK,
  Seed,
  SampleIndex,
  BlockTable,
};
inline constexpr int kNumStepInputs = 13;

struct StepInputInfo {
  StepInput id;
  std::string_view name;
  DType dtype;
  int64_t (*elements)(const Sizes &);
};

const StepInputInfo &info(StepInput input);
std::optional<StepInput> step_input_from_name(std::string_view name);

class StepInputs {
public:
  explicit StepInputs(const Sizes &max_sizes); // T, S and R at their limits

  size_t bytes() const { return bytes_; }
  int64_t max_blocks_per_seq() const { return max_blocks_per_seq_; }
  int64_t max_sequences() const { return max_sequences_; }
  size_t used_bytes(int64_t num_sequences)
      const; // prefix of the block that a step of so many sequences needs
  size_t offset(StepInput input) const {
    return offsets_[static_cast<int>(input)];
  }

  template <class T> T *data(std::byte *block, StepInput input) const {
    return reinterpret_cast<T *>(block + offset(input));
  }

private:
  std::array<size_t, kNumStepInputs> offsets_{};
  size_t bytes_ = 0;
  int64_t max_blocks_per_seq_, max_sequences_;
};

} // namespace llmc
