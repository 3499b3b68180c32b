#pragma once
// What Python passes with a request; see llmc_sampling_params.

#include "llmc/llmc.h"

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>
#include <vector>

// Python functions that a request calls on the executor thread. Made, called
// and destroyed with the GIL, which only requests that have one of them take
// there.
struct Callbacks {
  nanobind::object token_mask, logits_processor;

  struct Delete {
    void operator()(Callbacks *callbacks) const {
      nanobind::gil_scoped_acquire gil;
      delete callbacks;
    }
  };
};
using CallbacksPtr = std::unique_ptr<Callbacks, Callbacks::Delete>;

struct SamplingOptions {
  llmc_sampling_params values = llmc_sampling_params_default();
  std::vector<int32_t> stop_token_ids, allowed_token_ids;
  std::vector<std::pair<int32_t, float>> logit_bias;
  std::vector<std::vector<int32_t>> bad_words;
  nanobind::object token_mask = nanobind::none(),
                   logits_processor = nanobind::none();

  // Null when there is no function.
  CallbacksPtr callbacks() const;
};

// The arrays that a llmc_sampling_params points to. It is read while the
// request is submitted, `callbacks` until it has ended.
class SamplingArrays {
public:
  SamplingArrays(const SamplingOptions &options, Callbacks *callbacks);
  // A move keeps the arrays where they are, a copy would not.
  SamplingArrays(SamplingArrays &&) = default;
  SamplingArrays(const SamplingArrays &) = delete;
  const llmc_sampling_params *params() const { return &params_; }

private:
  llmc_sampling_params params_;
  std::vector<int32_t> bias_ids_, bad_words_;
  std::vector<float> biases_;
  std::vector<size_t> bad_word_lengths_;
};

void bind_sampling_options(nanobind::module_ &m);
