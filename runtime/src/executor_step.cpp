// One step of the executor: schedule, run, sample, append, emit.
//
// With overlap the device is never left without a step: the next one is
// scheduled, its inputs are written and it is queued while the one before runs.
// Its tokens are not known then; they stay on the device, where the next step
// reads them (BatchEntry::pending_row), and come to the host one step late. A
// request that turns out to have ended has one row too many in the step that is
// running then: nobody reads what it computes, and its blocks can be given away
// at once, because steps run one after the other.
#include "error.h"
#include "executor.h"
#include "stopwatch.h"

#include <algorithm>

namespace llmc {

void Executor::step() {
  if (in_flight_ && in_flight_->needs_host)
    complete_in_flight();
  monitor_.schedule_begins();
  const Batch &batch = scheduler_.schedule();
  if (batch.empty()) { // all that is left is in flight
    if (in_flight_)
      complete_in_flight();
    return;
  }
  if (!launch(batch))
    return;
  const Batch *before = std::exchange(in_flight_, &batch);
  if (before && !complete(*before))
    return;
  if (!overlap_)
    complete_in_flight();
}

// False: it could not be started, and its requests have failed.
bool Executor::launch(const Batch &batch) {
  Clock::time_point start = Clock::now();
  monitor_.launch_begins();
  try {
    sampler_.prepare(batch);
    runner_.run(batch, kv_cache_);
  } catch (const std::exception &error) {
    if (in_flight_)
      complete_in_flight(); // is not concerned
    fail_batches({&batch}, as_error(error));
    return false;
  }
  if (!in_flight_)
    busy_since_ = start;
  for (const BatchEntry &entry : batch.entries)
    if (entry.sequence->num_computed_tokens <
            entry.sequence->num_prompt_tokens ||
        entry.num_tokens > 1)
      counters_.num_prompt_tokens += entry.num_tokens;
  scheduler_.advance(batch);
  for (size_t row = 0; row < batch.logit_rows.size(); ++row) {
    if (!batch.logit_rows[row].params)
      continue; // of the prompt
    Request &request = request_of(batch, row);
    request.sequence.tokens.push_back(kPendingToken);
    ++request.sequence.num_pending_tokens;
    request.pending_row = static_cast<int>(row);
  }
  monitor_.launched(batch);
  return true;
}

void Executor::complete_in_flight() {
  if (const Batch *batch = std::exchange(in_flight_, nullptr))
    complete(*batch);
}

// Waits for a step and hands out its tokens. False: the device failed, and with
// it this step's requests and those of one in flight behind it.
bool Executor::complete(const Batch &batch) {
  try {
    wait_for(batch);
    Stopwatch watch(counters_.sample_seconds);
    sampler_.sample(batch);
  } catch (const std::exception &error) {
    fail_batches({&batch, std::exchange(in_flight_, nullptr)}, as_error(error));
    return false;
  }
  has_moved();
  ++counters_.num_steps;
  counters_.consecutive_failed_steps = 0;
  emissions_.clear();
  for (size_t row = 0; row < batch.logit_rows.size(); ++row) {
    const LogitRow &logit_row = batch.logit_rows[row];
    Request &request = request_of(batch, row);
    if (logit_row.prompt_position >= 0)
      request.num_prompt_logprobs = logit_row.prompt_position + 1;
    if (logit_row.params)
      append(request, sampler_.outcome(batch, row));
  }
  scheduler_.remove_finished();
  publish_stats();
  for (Emission &emission : emissions_)
    if (emission.token.id < 0)
      emission.stream->finish(emission.finish);
    else
      emission.stream->push(std::move(emission.token), emission.finish);
  for (const auto &[stream, error] : failed_)
    stream->finish(LLMC_FINISH_ERROR, error);
  failed_.clear();
  monitor_.emitted(batch, counters_);
  scheduler_.forget_removed();
  return true;
}

// Also for a step without output: it may have failed.
void Executor::wait_for(const Batch &batch) {
  monitor_.wait_begins(batch);
  runner_.wait(batch.slot);
  monitor_.done(batch);
  Clock::time_point now = Clock::now();
  counters_.step_seconds +=
      std::chrono::duration<double>(now - busy_since_).count();
  busy_since_ = now;
}

// The pending token of a request is known. It may have ended while the step
// ran, and then it has a row too many.
void Executor::append(Request &request, RowSampler::Outcome &outcome) {
  if (request.state == Request::State::Finished)
    return;
  auto &[token, offer, error] = outcome;
  Sequence &sequence = request.sequence;
  if (request.group)
    return take_offer(request, outcome);
  if (error) {
    scheduler_.finish(request);
    failed_.emplace_back(request.stream.get(), *error);
    return;
  }
  if (!request.prompt_logprobs.empty())
    request.stream->set_prompt_logprobs(
        std::exchange(request.prompt_logprobs, {}));
  sequence.tokens[static_cast<size_t>(sequence.num_known_tokens())] = token.id;
  --sequence.num_pending_tokens;
  ++counters_.num_generated_tokens;
  monitor_.has_token(request);
  llmc_finish finish = stop_reason(request, token.id);
  emissions_.push_back({request.stream.get(), std::move(token), finish});
  if (finish != LLMC_RUNNING)
    scheduler_.finish(request);
  else
    kv_cache_.publish_blocks(sequence);
}

Request &Executor::request_of(const Batch &batch, size_t row) {
  return *batch.entries[static_cast<size_t>(batch.logit_rows[row].entry)]
              .request;
}

llmc_finish Executor::stop_reason(const Request &request, int32_t token) const {
  auto contains = [&](const std::vector<int32_t> &ids) {
    return std::find(ids.begin(), ids.end(), token) != ids.end();
  };
  if (!request.params.ignore_eos && contains(model_.eos_token_ids))
    return LLMC_FINISH_STOP;
  if (contains(request.params.stop_token_ids))
    return LLMC_FINISH_STOP;
  if (request.sequence.num_known_tokens() >= request.max_total_tokens)
    return LLMC_FINISH_LENGTH;
  return LLMC_RUNNING;
}

Error Executor::as_error(const std::exception &error) {
  auto *known = dynamic_cast<const Error *>(&error);
  return known ? *known : Error(LLMC_INTERNAL, error.what());
}

// The steps' requests have an undefined cache now; everybody else goes on.
void Executor::fail_batches(std::initializer_list<const Batch *> batches,
                            const Error &error) {
  std::vector<std::shared_ptr<RequestStream>> streams;
  for (const Batch *batch : batches) {
    if (!batch)
      continue;
    for (const BatchEntry &entry : batch->entries)
      if (entry.request->state != Request::State::Finished) {
        for_each_member(*entry.request, [&](Request &member) {
          streams.push_back(member.stream);
        });
        scheduler_.finish(*entry.request);
      }
    ++counters_.num_failed_steps;
    ++counters_.consecutive_failed_steps;
  }
  scheduler_.remove_finished();
  // A device may report the failure of an earlier step only now.
  scheduler_.forget_cache();
  publish_stats();
  has_moved();
  {
    std::lock_guard lock(mutex_);
    last_error_ = error.what();
  }
  for (const auto &stream : streams)
    stream->finish(LLMC_FINISH_ERROR, error);
}

} // namespace llmc
