#include "logit_rules.h"

#include "error.h"

#include <algorithm>
#include <limits>

namespace llmc {

namespace {

constexpr float kNever = std::numeric_limits<float>::infinity();

} // namespace

LogitRules::LogitRules(const SamplingParams &params,
                       std::span<const int32_t> eos_token_ids, int vocab_size)
    : params_(params), num_words_((static_cast<size_t>(vocab_size) + 31) / 32),
      ngrams_(static_cast<size_t>(params.no_repeat_ngram_size)) {
  if (params.min_tokens > 0) {
    enders_.assign(eos_token_ids.begin(), eos_token_ids.end());
    enders_.insert(enders_.end(), params.stop_token_ids.begin(),
                   params.stop_token_ids.end());
  }
  for (const LogitBias &one : params.logit_bias)
    adjustments_[entry_of(one.token)].bias = one.bias;
  for (const std::vector<int32_t> &word : params.bad_words)
    if (word.size() == 1)
      adjustments_[entry_of(word[0])].penalty = kNever;
  if (!params.allowed_token_ids.empty()) {
    allowed_.assign(num_words_, 0);
    for (int32_t id : params.allowed_token_ids)
      allowed_[static_cast<size_t>(id) / 32] |= 1u << (id % 32);
  }
  num_lasting_ = adjustments_.size();
}

size_t LogitRules::entry_of(int32_t token) {
  auto [place, is_new] = entries_.try_emplace(token, adjustments_.size());
  if (is_new) {
    adjustments_.push_back({token, 0, 1, 0});
    counts_.push_back(0);
  }
  return place->second;
}

void LogitRules::count(int32_t token, bool is_output) {
  const bool penalised =
      params_.presence_penalty != 0 || params_.frequency_penalty != 0;
  if (params_.repetition_penalty == 1 && !(is_output && penalised))
    return;
  size_t entry = entry_of(token);
  Adjustment &adjustment = adjustments_[entry];
  adjustment.scale = params_.repetition_penalty;
  if (!is_output)
    return;
  int count = ++counts_[entry];
  if (adjustment.penalty != kNever)
    adjustment.penalty = params_.presence_penalty +
                         params_.frequency_penalty * static_cast<float>(count);
}

void LogitRules::forbid(int32_t token) {
  size_t entry = entry_of(token);
  if (adjustments_[entry].penalty == kNever)
    return;
  adjustments_[entry].penalty = kNever;
  forbidden_.push_back(entry);
}

void LogitRules::forget_forbidden() {
  for (size_t entry : forbidden_)
    if (entry < num_lasting_)
      adjustments_[entry].penalty =
          counts_[entry] > 0 ? params_.presence_penalty +
                                   params_.frequency_penalty *
                                       static_cast<float>(counts_[entry])
                             : 0;
    else
      entries_.erase(adjustments_[entry].token);
  forbidden_.clear();
  adjustments_.resize(num_lasting_);
  counts_.resize(num_lasting_);
}

void LogitRules::prepare(std::span<const int32_t> tokens,
                         size_t num_prompt_tokens) {
  forget_forbidden();
  for (; num_seen_ < tokens.size(); ++num_seen_)
    count(tokens[num_seen_], num_seen_ >= num_prompt_tokens);
  num_lasting_ = adjustments_.size();

  std::span<const int32_t> output = tokens.subspan(num_prompt_tokens);
  if (output.size() < static_cast<size_t>(params_.min_tokens))
    for (int32_t token : enders_)
      forbid(token);
  for (const std::vector<int32_t> &word : params_.bad_words) {
    size_t before = word.size() - 1;
    if (before > 0 && output.size() >= before &&
        std::equal(word.begin(), word.end() - 1, output.end() - before))
      forbid(word.back());
  }
  for (int32_t token : ngrams_.would_repeat(tokens))
    forbid(token);

  row_.adjustments = adjustments_;
  row_.mask = allowed_;
  if (params_.token_mask)
    run_token_mask(tokens, num_prompt_tokens);
}

void LogitRules::run_token_mask(std::span<const int32_t> tokens,
                                size_t num_prompt_tokens) {
  mask_.assign(num_words_, ~uint32_t{0});
  if (int32_t code = params_.token_mask(params_.callback_user, tokens.data(),
                                        tokens.size(), num_prompt_tokens,
                                        mask_.data(), mask_.size()))
    fail(LLMC_INVALID_ARGUMENT, "the request's token_mask failed with code ",
         code, " after ", tokens.size() - num_prompt_tokens,
         " generated tokens");
  for (size_t i = 0; i < allowed_.size(); ++i)
    mask_[i] &= allowed_[i];
  row_.mask = mask_;
}

} // namespace llmc
