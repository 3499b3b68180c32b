#pragma once
// From the rows of a step's logits to what callers receive: rules before the
// step, tokens and log probabilities after it.
//
// A token is sampled on the device when the runner does that. The host samples
// when it does not, and those rows whose request has a logits_processor or
// rules that the step inputs have no room for; these are counted. Beams are
// offered tokens on the host.

#include "batch.h"
#include "error.h"
#include "logprobs.h"
#include "sampler.h"
#include "step_runner.h"

#include <optional>
#include <vector>

namespace llmc {

// Of a request whose rules leave no token.
Error nothing_allowed();

class RowSampler {
public:
  struct Outcome {
    OutputToken token;
    BeamOffer offer;            // of a beam, in place of the token
    std::optional<Error> error; // of this row's request; no token then
  };

  explicit RowSampler(StepRunner &runner) : runner_(runner) {}

  // Before the step runs: the rules of its rows for their next token. The step
  // before may run still.
  void prepare(const Batch &batch);

  // After it: waits for it where it must. Prompt rows go to their requests.
  void sample(const Batch &batch);

  // Of batch.logit_rows[row]; none for rows without sampling parameters. Valid
  // until the next prepare() of a batch with the same slot.
  Outcome &outcome(const Batch &batch, size_t row) {
    return outcomes_[batch.slot][row];
  }

  int64_t num_host_sampled() const { return num_host_sampled_; }

private:
  bool on_device(const LogitRow &row) const;
  void sample_on_host(const Batch &batch, size_t row);
  void sample_beam(const Batch &batch, size_t row, Sampler &sampler);
  void add_logprobs(const Batch &batch, size_t row);

  StepRunner &runner_;
  std::vector<Outcome> outcomes_[2]; // by Batch::slot
  std::vector<size_t> host_rows_, processed_rows_, logprob_rows_;
  int64_t num_host_sampled_ = 0;
};

} // namespace llmc
