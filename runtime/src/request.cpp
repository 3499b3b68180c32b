#include "request.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace llmc {

// Nothing comes after the end, which another thread may have set.
void RequestStream::push(OutputToken token, llmc_finish finish) {
  if (callback_ && finish == LLMC_RUNNING) { // the usual case needs no lock
    if (has_ended())
      return;
  } else {
    std::lock_guard lock(mutex_);
    if (has_ended())
      return;
    finish_ = finish;
    if (!callback_)
      tokens_.push_back(std::move(token));
  }
  if (callback_) {
    if (in_callback_.test_and_set())
      return; // it is being told the end
    if (!end_told_) {
      end_told_ = finish != LLMC_RUNNING;
      llmc_token view = token.view();
      callback_(user_, &view, 1, finish);
    }
    in_callback_.clear();
    if (finish == LLMC_RUNNING) { // who waits, waits for the end
      if (has_ended())            // while the callback ran
        tell_end();
      return;
    }
  }
  ready_.notify_all();
}

// To the callback, once. When it runs just now, for another thread, that thread
// sees the end as soon as the callback returns.
void RequestStream::tell_end() {
  if (in_callback_.test_and_set())
    return;
  if (!std::exchange(end_told_, true))
    callback_(user_, nullptr, 0, finish_);
  in_callback_.clear();
}

void RequestStream::set_prompt_logprobs(std::vector<OutputToken> tokens) {
  std::lock_guard lock(mutex_);
  prompt_ = std::move(tokens);
  for (const OutputToken &token : prompt_)
    prompt_views_.push_back(token.view());
}

std::span<const llmc_token> RequestStream::prompt_logprobs() const {
  std::lock_guard lock(mutex_);
  return prompt_views_;
}

void RequestStream::finish(llmc_finish reason, std::optional<Error> error) {
  {
    std::lock_guard lock(mutex_);
    if (finish_ != LLMC_RUNNING)
      return;
    finish_ = reason;
    error_ = std::move(error);
  }
  if (callback_)
    tell_end();
  ready_.notify_all();
}

size_t RequestStream::next(llmc_token *tokens, size_t capacity,
                           double timeout_seconds, llmc_finish &finish) {
  std::unique_lock lock(mutex_);
  auto is_ready = [&] { return !tokens_.empty() || finish_ != LLMC_RUNNING; };
  finish = LLMC_RUNNING;
  if (timeout_seconds < 0)
    ready_.wait(lock, is_ready);
  // A year is as good as forever and keeps the clock arithmetic from
  // overflowing.
  else if (!ready_.wait_for(
               lock,
               std::chrono::duration<double>(std::min(timeout_seconds, 3e7)),
               is_ready))
    fail(LLMC_TIMEOUT, "no token within ", timeout_seconds, " s");
  size_t n = std::min(capacity, tokens_.size());
  handed_out_.clear(); // what the views of the call before pointed into
  for (size_t i = 0; i < n; ++i) {
    handed_out_.push_back(std::move(tokens_.front()));
    tokens_.pop_front();
    tokens[i] = handed_out_.back().view(); // moves of a vector keep its storage
  }
  if (tokens_.empty())
    finish = finish_;
  if (n == 0 && error_)
    throw *error_;
  if (error_ && n > 0)
    finish = LLMC_RUNNING; // hand out the tokens first, the error next time
  return n;
}

} // namespace llmc
