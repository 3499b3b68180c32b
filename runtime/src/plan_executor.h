#pragma once
// The plan bound to memory: every argument resolved once, only sizes computed
// per step.

#include "backend.h"
#include "plan.h"
#include "step_inputs.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace llmc {

// Where everything the plan refers to lies on the device.
struct PlanMemory {
  uint64_t arena = 0;
  std::map<std::string, uint64_t> weights;
  std::vector<uint64_t> keys, values; // per layer
  uint64_t step_block = 0;
};

// All launches of one kernel in a step, timed back to back.
struct KernelTime {
  const Kernel *kernel;
  int num_launches;
  double seconds;       // of all of them
  double chain_seconds; // by which the step is longer for them
};
struct StepProfile {
  double seconds = 0;              // of the whole step
  std::vector<KernelTime> kernels; // in the plan's order
};

class PlanExecutor {
public:
  // `fixed` carries NB and B; `max_rows` is the largest S and R of a step.
  PlanExecutor(Backend &backend, const Plan &plan, const StepInputs &inputs,
               const PlanMemory &memory, const Sizes &fixed, int max_rows);

  // Runs one step of `sizes` (T >= 1) whose inputs stand in the step block.
  void run(const Sizes &sizes, const StepUpload &upload);

  // A step with T = S = R (each sequence one token and one logit row) can be
  // replayed when the caller pads its inputs to one of a few sizes. This is the
  // size for `rows`, or 0 when such a step has to be run().
  int replay_rows(int rows);

  // Replays a step of replay_rows() rows, recording it the first time.
  void replay(int rows, const StepUpload &upload);

  // Times a step of `sizes` whose inputs stand in the step block, then each of
  // its kernels by itself. Results of the step are as after run().
  StepProfile profile(const Sizes &sizes, size_t input_bytes, int repeats);

  uint64_t logits() const { return logits_; }
  uint64_t next_tokens() const { return next_tokens_; } // 0: the host samples

private:
  struct DynamicArg {
    uint64_t *slot;
    Expr value;
    bool wide;
  };
  struct BoundLaunch {
    const Kernel *kernel;
    const void *handle;
    std::array<Expr, 3> grid;
    std::vector<uint64_t> slots;
    std::vector<void *> params;
    std::vector<DynamicArg> dynamic;
    std::vector<std::unique_ptr<EncodedTensorMap>> maps;
  };
  struct BoundRange {
    int max_tokens;
    std::vector<BoundLaunch> launches;
  };

  BoundRange &range_of(int64_t num_tokens);
  void prepare(Sizes sizes); // into prepared_
  uint64_t resolve(const Address &address) const;
  BoundLaunch bind(const Launch &launch);

  Backend &backend_;
  const Plan &plan_;
  const StepInputs &inputs_;
  const PlanMemory &memory_;
  Sizes fixed_;
  int max_rows_;
  std::vector<const void *> kernels_;
  std::vector<BoundRange> ranges_;
  std::vector<PreparedLaunch>
      prepared_; // of the current step; kept to avoid allocation
  uint64_t logits_ = 0, next_tokens_ = 0;
};

} // namespace llmc
