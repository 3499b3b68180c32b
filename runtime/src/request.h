#pragma once
// A request and the stream on which its caller receives tokens.

#include "beam_search.h"
#include "error.h"
#include "logit_rules.h"
#include "logprobs.h"
#include "sampling_params.h"
#include "sequence.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace llmc {

// Counts what callers asked of running requests (cancel, priority), so that the
// executor looks through its requests only when there is news.
using Attention = std::atomic<uint64_t>;

// The side of a request that both the executor and the caller touch. It
// outlives the engine when the caller holds it.
class RequestStream {
public:
  RequestStream(llmc_token_callback callback, void *user,
                std::shared_ptr<Attention> attention = nullptr)
      : callback_(callback), user_(user), attention_(std::move(attention)) {}

  // Executor side.
  void push(OutputToken token,
            llmc_finish finish); // LLMC_RUNNING: more will come
  // Also from another thread, when the executor stands still. Harmless after
  // the end.
  void finish(llmc_finish reason, std::optional<Error> error = std::nullopt);
  bool has_ended() const { return finish_ != LLMC_RUNNING; }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  int priority() const { return priority_.load(std::memory_order_relaxed); }

  void set_reused_tokens(int count) { reused_tokens_ = count; }
  void set_prompt_logprobs(std::vector<OutputToken> tokens); // once

  // Caller side; the contract is that of llmc_request_next. Throws the error of
  // a failed request.
  size_t next(llmc_token *tokens, size_t capacity, double timeout_seconds,
              llmc_finish &finish);
  int reused_tokens() const { return reused_tokens_; }
  std::span<const llmc_token> prompt_logprobs() const;
  void cancel() {
    cancelled_ = true;
    call_attention();
  }
  void set_priority(int priority) {
    priority_ = priority;
    call_attention();
  }

private:
  void tell_end();
  void call_attention() {
    if (attention_)
      ++*attention_;
  }

  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<OutputToken> tokens_;
  std::vector<OutputToken> handed_out_; // by the last next()
  std::vector<OutputToken> prompt_;
  std::vector<llmc_token> prompt_views_;
  std::atomic<llmc_finish> finish_{LLMC_RUNNING}; // changes under mutex_
  std::optional<Error> error_;
  std::atomic_flag in_callback_; // whoever sets it may call the callback
  bool end_told_ = false;        // to the callback; guarded by the flag
  std::atomic<bool> cancelled_{false};
  std::atomic<int> priority_{0};
  std::atomic<int> reused_tokens_{-1};
  const llmc_token_callback callback_;
  void *const user_;
  const std::shared_ptr<Attention> attention_;
};

struct Request;

// The requests of one beam search. To the scheduler they are one: they start,
// give their blocks back and end together, and only the first one waits in the
// queue. A request is an answer to its caller and a beam to the scheduler;
// which beam has nothing to do with which answer.
struct BeamGroup {
  BeamSearch search;
  // All that there will be. They refer to this: emptied at the end, or when
  // they are not accepted.
  std::vector<std::shared_ptr<Request>> members;
  size_t num_beams = 1; // the first ones run, the others have nothing yet
  // For the next token of each beam; those that are not computed yet have none.
  std::vector<BeamOffer> offers;
  std::vector<uint8_t> has_offer;

  BeamGroup(BeamSearch chosen, std::vector<std::shared_ptr<Request>> all)
      : search(std::move(chosen)), members(std::move(all)),
        offers(members.size()), has_offer(members.size()) {}
};

// The executor's own side: nothing here is shared between threads once the
// request is queued.
struct Request {
  enum class State { Waiting, Running, Finished };

  Sequence sequence;
  SamplingParams params;
  std::unique_ptr<LogitRules> rules; // null: none
  // With params.prompt_logprobs: the prompt's tokens, and how many of the
  // second and those behind it have theirs.
  std::vector<OutputToken> prompt_logprobs;
  int num_prompt_logprobs = 0;
  int max_total_tokens = 0; // prompt and output: max_tokens, cut at max_seq_len
  // No token is computed for it after this moment.
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::time_point::max();
  std::shared_ptr<RequestStream> stream;
  // Of a fork that has not started: the request that computes the prompt of
  // both. Same tokens, same salt; submitted before it.
  std::shared_ptr<Request> leader;
  std::shared_ptr<BeamGroup> group; // null: no beam search

  // Kept by StepMonitor.
  struct Times {
    std::chrono::steady_clock::time_point submitted{}, last_token{};
    bool started = false;
  } times;

  // The scheduler's.
  State state = State::Waiting;
  int priority = 0;
  int64_t arrival = 0, rank = 0; // see scheduler.h
  uint64_t last_step = 0;        // in which it had tokens
  int reserved_blocks = 0;       // promised to it
  int num_preemptions = 0;
  bool needs_host = false; // see needs_host() of sampling parameters
  int pending_row = -1;    // of the step in flight that samples its last token

  bool goes_before(const Request &other) const {
    return rank != other.rank ? rank < other.rank : arrival < other.arrival;
  }

  // Waits in the queue by itself; other beams come along with their first.
  bool is_head() const {
    return !group || group->members.empty() ||
           group->members.front().get() == this;
  }

  // Nothing is left to compute, though its last token may be pending.
  bool is_complete() const { return sequence.num_tokens() >= max_total_tokens; }

  bool wants_prompt_logprobs() const {
    return params.prompt_logprobs >= 0 &&
           num_prompt_logprobs + 1 < sequence.num_prompt_tokens;
  }

  // The last token is never fed back, so its K and V are never stored.
  int max_cached_tokens() const { return max_total_tokens - 1; }
};

// `body` on a request, or on all that belong to its beam search.
void for_each_member(Request &request, auto &&body) {
  if (!request.group)
    return body(request);
  for (const std::shared_ptr<Request> &member : request.group->members)
    body(*member);
}

} // namespace llmc
