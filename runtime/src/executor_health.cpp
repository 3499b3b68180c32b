// What becomes of an engine that cannot go on: its requests end with the
// reason, new ones are refused with it, and health tells the truth.
#include "checked.h"
#include "error.h"
#include "executor.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace llmc {

namespace {

// So many failed steps in a row are no accident.
constexpr int64_t kMaxFailedSteps = 3;

} // namespace

void Executor::check_health() const {
  std::lock_guard lock(mutex_);
  check_usable();
  if (published_.consecutive_failed_steps >= kMaxFailedSteps)
    fail(LLMC_DEVICE_ERROR, "the last ", published_.consecutive_failed_steps,
         " steps failed: ", last_error_);
}

// With mutex_ held.
void Executor::check_usable() const {
  if (lost_)
    fail(lost_->status(),
         "the engine has stopped and must be loaded again: ", lost_->what());
  if (!stalled_.empty())
    fail(LLMC_DEVICE_ERROR, stalled_);
}

// When nothing runs, but not after each of many short requests; in builds that
// check themselves after each step.
void Executor::check_books() {
  constexpr std::chrono::seconds kPause{1};
  const bool is_idle = !in_flight_ && !scheduler_.has_work();
  if (!kChecked && (!is_idle || Clock::now() - checked_ < kPause))
    return;
  scheduler_.check();
  checked_ = Clock::now();
}

// With mutex_ held. Of requests that have ended the stream may live on for
// their callers.
void Executor::remember(const std::shared_ptr<RequestStream> &stream) {
  if (streams_.size() >= max_streams_) {
    std::erase_if(streams_, [](const std::weak_ptr<RequestStream> &one) {
      auto known = one.lock();
      return !known || known->has_ended();
    });
    max_streams_ = std::max<size_t>(64, 2 * streams_.size());
  }
  streams_.push_back(stream);
}

// Nothing more can be computed, or what the executor knows may be wrong.
void Executor::give_up(const Error &error) {
  std::vector<std::weak_ptr<RequestStream>> streams;
  {
    std::lock_guard lock(mutex_);
    lost_ = error;
    streams.swap(streams_);
    for (const auto &request : incoming_)
      if (request->group)
        request->group->members.clear();
    incoming_.clear();
  }
  std::fprintf(stderr, "llmc: the engine stops: %s\n", error.what());
  in_flight_ = nullptr;
  try {
    end_all(error); // what broke may be just this
  } catch (const std::exception &) {
  }
  for (const auto &one : streams)
    if (auto stream = one.lock())
      stream->finish(LLMC_FINISH_ERROR, error);
}

// A step has ended, well or not: whatever the watchdog said, it moves.
void Executor::has_moved() {
  watchdog_.busy();
  std::lock_guard lock(mutex_);
  stalled_.clear();
}

// The watchdog's thread, while the executor stands still somewhere.
void Executor::on_stall(double seconds) {
  std::vector<std::weak_ptr<RequestStream>> streams;
  std::string reason;
  {
    std::lock_guard lock(mutex_);
    if (!watchdog_.stands()) // it came back just now
      return;
    stalled_ = reason =
        concat("the engine has not moved for ", std::round(seconds * 10) / 10,
               " s, it is at: ", monitor_.phase());
    streams = streams_;
    std::fprintf(
        stderr,
        "llmc: %s; %lld requests run, %lld wait, %lld of %lld KV blocks are "
        "used, %lld steps are done, %lld failed; their requests end with an "
        "error\n",
        reason.c_str(), static_cast<long long>(published_.num_running),
        static_cast<long long>(published_.num_waiting),
        static_cast<long long>(published_.blocks_used),
        static_cast<long long>(published_.blocks_total),
        static_cast<long long>(published_.num_steps),
        static_cast<long long>(published_.num_failed_steps));
  }
  for (const auto &one : streams)
    if (auto stream = one.lock()) {
      stream->finish(LLMC_FINISH_ERROR, Error(LLMC_DEVICE_ERROR, reason));
      stream->cancel(); // should the executor come back
    }
}

} // namespace llmc
