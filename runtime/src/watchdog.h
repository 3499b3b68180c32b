#pragma once
// Notices that a thread which should make progress has made none for too long.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace llmc {

class Watchdog {
public:
  // on_stall(seconds without progress) is called on a thread of the watchdog,
  // once for each time the watched one stands still. limit_seconds <= 0:
  // never.
  Watchdog(double limit_seconds, std::function<void(double)> on_stall);
  ~Watchdog();
  Watchdog(const Watchdog &) = delete;

  // The watched thread: it has work from now on or has got further; it has
  // none.
  void busy() { since_ = now(); }
  void idle() { since_ = kIdle; }

  // It has work and has got no further for as long as is a stall.
  bool stands() const { return seconds_since(since_) >= limit_seconds_; }

private:
  using Clock = std::chrono::steady_clock;
  static constexpr int64_t kIdle = -1;
  static int64_t now() { return Clock::now().time_since_epoch().count(); }
  static double seconds_since(int64_t since) {
    return since == kIdle
               ? 0
               : std::chrono::duration<double>(Clock::duration(now() - since))
                     .count();
  }
  void watch();

  const double limit_seconds_;
  const std::function<void(double)> on_stall_;
  std::atomic<int64_t> since_{kIdle}; // in ticks of Clock
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

} // namespace llmc
