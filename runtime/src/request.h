#pragma once
// A request and the stream on which its caller receives tokens.

#include "error.h"
#include "sampling_params.h"
#include "sequence.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace llmc {

// The side of a request that both the executor and the caller touch. It
// outlives the engine when the caller holds it.
class RequestStream {
public:
  RequestStream(llmc_token_callback callback, void *user)
      : callback_(callback), user_(user) {}

  // Executor side.
  void push(llmc_token token,
            llmc_finish finish); // LLMC_RUNNING: more will come
  void finish(llmc_finish reason, std::optional<Error> error = std::nullopt);
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  // Caller side; the contract is that of llmc_request_next. Throws the error of
  // a failed request.
  size_t next(llmc_token *tokens, size_t capacity, double timeout_seconds,
              llmc_finish &finish);
  void cancel() { cancelled_ = true; }

private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<llmc_token> tokens_;
  llmc_finish finish_ = LLMC_RUNNING;
  std::optional<Error> error_;
  std::atomic<bool> cancelled_{false};
  const llmc_token_callback callback_;
  void *const user_;
};

// The executor's own side: nothing here is shared between threads once the
// request is queued.
struct Request {
  enum class State { Waiting, Running, Finished };

  Sequence sequence;
  SamplingParams params;
  int max_total_tokens = 0; // prompt and output: max_tokens, cut at max_seq_len
  State state = State::Waiting;
  int reserved_blocks = 0; // promised to it by the scheduler
  std::shared_ptr<RequestStream> stream;

  // The last token is never fed back, so its K and V are never stored.
  int max_cached_tokens() const { return max_total_tokens - 1; }
};

} // namespace llmc
