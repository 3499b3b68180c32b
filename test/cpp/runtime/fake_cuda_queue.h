#pragma once
// What the stand-in for libcuda has yet to do.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <utility>

namespace llmc::test {

struct FakeEvent {
  uint64_t position = 0; // in the queue
  bool asked = false;    // whether it is done
};

class FakeQueue {
public:
  void push_back(std::function<void()> work) {
    work_.push_back(std::move(work));
    ++end_;
  }
  uint64_t end() const { return end_; }
  bool is_done(uint64_t position) const {
    return position <= end_ - work_.size();
  }
  void run_until(uint64_t position) {
    while (!is_done(position)) {
      auto work = std::move(work_.front());
      work_.pop_front();
      work();
    }
  }
  // As a driver does: for ever.
  void wait_until(uint64_t position, const std::atomic<bool> &stalled) {
    while (stalled)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    run_until(position);
  }
  void clear() { work_.clear(); }

private:
  std::deque<std::function<void()>> work_;
  uint64_t end_ = 0; // of all that was ever queued
};

} // namespace llmc::test
