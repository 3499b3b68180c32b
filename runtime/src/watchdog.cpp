#include "watchdog.h"

#include <algorithm>

namespace llmc {

Watchdog::Watchdog(double limit_seconds, std::function<void(double)> on_stall)
    : limit_seconds_(std::min(limit_seconds, 3e7)),
      on_stall_(std::move(on_stall)) {
  if (limit_seconds_ > 0)
    thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable())
    thread_.join();
}

void Watchdog::watch() {
  int64_t reported = kIdle;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock,
                         std::chrono::duration<double>(limit_seconds_ / 8),
                         [&] { return stop_; })) {
    int64_t since = since_;
    double seconds = seconds_since(since);
    if (since == reported || seconds < limit_seconds_)
      continue;
    reported = since;
    lock.unlock();
    on_stall_(seconds);
    lock.lock();
  }
}

} // namespace llmc
