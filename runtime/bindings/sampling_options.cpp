#include "sampling_options.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

namespace nb = nanobind;

namespace {

// Python may keep its arguments, so it gets copies.
template <class T> struct Copy {
  T *data;
  nb::object array;

  Copy(const T *source, size_t size) : data(new T[size]) {
    std::copy_n(source, size, data);
    nb::capsule owner(data,
                      [](void *p) noexcept { delete[] static_cast<T *>(p); });
    array =
        nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
  }
};

// f(tokens, num_prompt_tokens, values); what it wrote into values comes back.
// The exception is the Python wrapper's to keep
// (llmc.runtime.sampling_options).
template <class T>
int32_t call(const nb::object &function, const int32_t *tokens,
             size_t num_tokens, size_t num_prompt_tokens, T *values,
             size_t size) {
  nb::gil_scoped_acquire gil;
  try {
    Copy<int32_t> history(tokens, num_tokens);
    Copy<T> changed(values, size);
    function(history.array, num_prompt_tokens, changed.array);
    std::copy_n(changed.data, size, values);
    return 0;
  } catch (const std::exception &) {
    return 1;
  }
}

int32_t token_mask(void *user, const int32_t *tokens, size_t num_tokens,
                   size_t num_prompt_tokens, uint32_t *mask, size_t num_words) {
  return call(static_cast<Callbacks *>(user)->token_mask, tokens, num_tokens,
              num_prompt_tokens, mask, num_words);
}

int32_t logits_processor(void *user, const int32_t *tokens, size_t num_tokens,
                         size_t num_prompt_tokens, float *logits,
                         size_t vocab_size) {
  return call(static_cast<Callbacks *>(user)->logits_processor, tokens,
              num_tokens, num_prompt_tokens, logits, vocab_size);
}

} // namespace

CallbacksPtr SamplingOptions::callbacks() const {
  if (token_mask.is_none() && logits_processor.is_none())
    return nullptr;
  return CallbacksPtr(new Callbacks{token_mask, logits_processor});
}

SamplingArrays::SamplingArrays(const SamplingOptions &options,
                               Callbacks *callbacks)
    : params_(options.values) {
  for (auto [id, bias] : options.logit_bias) {
    bias_ids_.push_back(id);
    biases_.push_back(bias);
  }
  for (const std::vector<int32_t> &word : options.bad_words) {
    bad_words_.insert(bad_words_.end(), word.begin(), word.end());
    bad_word_lengths_.push_back(word.size());
  }
  params_.stop_token_ids = options.stop_token_ids.data();
  params_.num_stop_token_ids = options.stop_token_ids.size();
  params_.allowed_token_ids = options.allowed_token_ids.data();
  params_.num_allowed_token_ids = options.allowed_token_ids.size();
  params_.logit_bias_ids = bias_ids_.data();
  params_.logit_bias = biases_.data();
  params_.num_logit_bias = bias_ids_.size();
  params_.bad_words = bad_words_.data();
  params_.bad_word_lengths = bad_word_lengths_.data();
  params_.num_bad_words = bad_word_lengths_.size();
  if (callbacks) {
    params_.callback_user = callbacks;
    if (!callbacks->token_mask.is_none())
      params_.token_mask = token_mask;
    if (!callbacks->logits_processor.is_none())
      params_.logits_processor = logits_processor;
  }
}

void bind_sampling_options(nb::module_ &m) {
  using Options = SamplingOptions;
  nb::class_<Options> options(m, "SamplingOptions",
                              "llmc_sampling_params for Python.");
  options.def(nb::init<>());
  auto value = [&](const char *name, auto llmc_sampling_params::*field) {
    using T = std::remove_reference_t<decltype(std::declval<Options>().values.*
                                               field)>;
    options.def_prop_rw(
        name, [field](const Options &self) { return self.values.*field; },
        [field](Options &self, T v) { self.values.*field = v; });
  };
  value("max_tokens", &llmc_sampling_params::max_tokens);
  value("min_tokens", &llmc_sampling_params::min_tokens);
  value("temperature", &llmc_sampling_params::temperature);
  value("top_p", &llmc_sampling_params::top_p);
  value("min_p", &llmc_sampling_params::min_p);
  value("top_k", &llmc_sampling_params::top_k);
  value("ignore_eos", &llmc_sampling_params::ignore_eos);
  value("logprobs", &llmc_sampling_params::logprobs);
  value("prompt_logprobs", &llmc_sampling_params::prompt_logprobs);
  value("repetition_penalty", &llmc_sampling_params::repetition_penalty);
  value("presence_penalty", &llmc_sampling_params::presence_penalty);
  value("frequency_penalty", &llmc_sampling_params::frequency_penalty);
  value("no_repeat_ngram_size", &llmc_sampling_params::no_repeat_ngram_size);
  value("priority", &llmc_sampling_params::priority);
  value("timeout", &llmc_sampling_params::timeout_seconds);
  value("cache_salt", &llmc_sampling_params::cache_salt);
  value("retention_priority", &llmc_sampling_params::retention_priority);
  value("beam_width", &llmc_sampling_params::beam_width);
  value("length_penalty", &llmc_sampling_params::length_penalty);
  value("early_stopping", &llmc_sampling_params::early_stopping);
  options.def_prop_rw(
      "seed",
      [](const Options &self) {
        return self.values.has_seed ? std::optional(self.values.seed)
                                    : std::nullopt;
      },
      [](Options &self, std::optional<uint64_t> seed) {
        self.values.has_seed = seed.has_value();
        self.values.seed = seed.value_or(0);
      },
      nb::for_setter(nb::arg().none()));
  options.def_rw("stop_token_ids", &Options::stop_token_ids)
      .def_rw("allowed_token_ids", &Options::allowed_token_ids)
      .def_rw("logit_bias", &Options::logit_bias, "Pairs of token and bias.")
      .def_rw("bad_words", &Options::bad_words, "Token ids of each.")
      .def_rw("token_mask", &Options::token_mask,
              nb::for_setter(nb::arg().none()),
              "f(tokens, num_prompt_tokens, mask u32), which changes mask.")
      .def_rw(
          "logits_processor", &Options::logits_processor,
          nb::for_setter(nb::arg().none()),
          "f(tokens, num_prompt_tokens, logits f32), which changes logits.");
}
