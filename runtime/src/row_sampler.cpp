#include "row_sampler.h"

#include "logit_rules.h"
#include "request.h"
#include "thread_pool.h"

namespace llmc {

namespace {

Request &request_of(const Batch &batch, const LogitRow &row) {
  return *batch.entries[static_cast<size_t>(row.entry)].request;
}

// What a code of sampler.h means to whoever waits for a token.
Error error_of(int32_t code) {
  switch (code) {
  case kNothingAllowed:
    return nothing_allowed();
  case kBadProcessor:
    return Error(LLMC_INVALID_ARGUMENT,
                 "the request's logits_processor returned NaN or infinity; "
                 "expected numbers, and minus infinity for tokens that may not "
                 "come");
  default:
    return Error(LLMC_DEVICE_ERROR,
                 "the model produced logits that are not numbers (NaN or "
                 "infinite); check the engine with `llmc eval`, it may be "
                 "damaged or its precision too low");
  }
}

} // namespace

Error nothing_allowed() {
  return Error(LLMC_INVALID_ARGUMENT,
               "no token may come next: allowed_token_ids, bad_words, "
               "min_tokens, no_repeat_ngram_size and token_mask of the "
               "request leave none; loosen one of them");
}

void RowSampler::prepare(const Batch &batch) {
  std::vector<Outcome> &outcomes = outcomes_[batch.slot];
  outcomes.resize(batch.logit_rows.size());
  for (size_t i = 0; i < outcomes.size(); ++i) {
    Outcome &outcome = outcomes[i];
    outcome.token = {};
    outcome.error.reset();
    const LogitRow &row = batch.logit_rows[i];
    if (!row.rules)
      continue;
    Request &request = request_of(batch, row);
    try {
      request.rules->prepare(
          request.sequence.tokens,
          static_cast<size_t>(request.sequence.num_prompt_tokens));
    } catch (const Error &error) { // a callback's
      outcome.error = error;
    }
  }
}

bool RowSampler::on_device(const LogitRow &row) const {
  if (!runner_.samples_on_device() || row.params->logits_processor ||
      row.params->beams.width > 1)
    return false;
  return !row.rules || runner_.has_room_for_rules(row.rules->row().num_words());
}

void RowSampler::sample(const Batch &batch) {
  std::vector<Outcome> &outcomes = outcomes_[batch.slot];
  std::span<const int32_t> device_tokens;
  if (runner_.samples_on_device())
    device_tokens = runner_.next_tokens(batch.slot);
  host_rows_.clear();
  processed_rows_.clear();
  logprob_rows_.clear();
  for (size_t i = 0; i < batch.logit_rows.size(); ++i) {
    const LogitRow &row = batch.logit_rows[i];
    if (row.prompt_position >= 0)
      logprob_rows_.push_back(i);
    if (!row.params || outcomes[i].error)
      continue;
    if (row.params->logprobs >= 0 && row.params->beams.width == 1)
      logprob_rows_.push_back(i);
    if (!on_device(row))
      (row.params->logits_processor ? processed_rows_ : host_rows_)
          .push_back(i);
    else
      outcomes[i].token.id = device_tokens[i];
  }
  if (runner_.samples_on_device())
    num_host_sampled_ +=
        static_cast<int64_t>(host_rows_.size() + processed_rows_.size());
  if (!host_rows_.empty() || !processed_rows_.empty() || !logprob_rows_.empty())
    runner_.logits(0); // fetch before the threads share it

  ThreadPool &threads = runner_.thread_pool();
  if (!host_rows_.empty())
    threads.parallel_for(
        static_cast<int64_t>(host_rows_.size()), [&](int64_t i) {
          sample_on_host(batch, host_rows_[static_cast<size_t>(i)]);
        });
  for (size_t row : processed_rows_) // callers' code: on this thread
    sample_on_host(batch, row);
  for (size_t i = 0; i < outcomes.size(); ++i)
    if (batch.logit_rows[i].params && !outcomes[i].error &&
        outcomes[i].token.id < 0)
      outcomes[i].error = error_of(outcomes[i].token.id);
  if (!logprob_rows_.empty())
    threads.parallel_for(
        static_cast<int64_t>(logprob_rows_.size()), [&](int64_t i) {
          add_logprobs(batch, logprob_rows_[static_cast<size_t>(i)]);
        });
}

void RowSampler::sample_on_host(const Batch &batch, size_t i) {
  thread_local Sampler sampler;
  Outcome &outcome = outcomes_[batch.slot][i];
  const LogitRow &row = batch.logit_rows[i];
  const Sequence &sequence =
      *batch.entries[static_cast<size_t>(row.entry)].sequence;
  if (row.params->beams.width > 1) {
    sample_beam(batch, i, sampler);
    return;
  }
  try {
    outcome.token.id = sampler.sample(
        runner_.logits(static_cast<int>(i)), *row.params, row.sample_index,
        row.rules ? row.rules->row() : RowRules{},
        // The token that is being sampled has its place there already.
        {std::span(sequence.tokens)
             .first(static_cast<size_t>(sequence.num_known_tokens())),
         static_cast<size_t>(sequence.num_prompt_tokens)});
  } catch (const Error &error) { // a callback's
    outcome.error = error;
  }
}

// A beam without a continuation ends; its search may go on.
void RowSampler::sample_beam(const Batch &batch, size_t i, Sampler &sampler) {
  Outcome &outcome = outcomes_[batch.slot][i];
  const LogitRow &row = batch.logit_rows[i];
  std::span<const float> logits = runner_.logits(static_cast<int>(i));
  int32_t code = sampler.offer(
      logits, row.rules ? row.rules->row() : RowRules{},
      request_of(batch, row).group->search.num_candidates(), outcome.offer);
  outcome.token.id = code == kNothingAllowed ? 0 : code;
  outcome.offer.top.clear();
  if (code == 0 && row.params->logprobs > 0)
    outcome.offer.top = logprobs_of(logits, 0, row.params->logprobs).top;
}

void RowSampler::add_logprobs(const Batch &batch, size_t i) {
  const LogitRow &row = batch.logit_rows[i];
  std::span<const float> logits = runner_.logits(static_cast<int>(i));
  if (row.prompt_position < 0) {
    Outcome &outcome = outcomes_[batch.slot][i];
    if (!outcome.error)
      outcome.token.logprobs =
          logprobs_of(logits, outcome.token.id, row.params->logprobs);
    return;
  }
  Request &request = request_of(batch, row);
  OutputToken &token =
      request.prompt_logprobs[static_cast<size_t>(row.prompt_position) + 1];
  token.logprobs =
      logprobs_of(logits, token.id, request.params.prompt_logprobs);
}

} // namespace llmc
