#pragma once
// How often a duration was seen. One thread adds, any thread reads.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace llmc {

// Four buckets an octave, from 2^-20 s (a microsecond) to 2^9 s; the first and
// the last take what lies outside.
class Histogram {
public:
  static constexpr int kBuckets = 29 * 4;

  void add(double seconds) {
    size_t i = static_cast<size_t>(bucket(seconds));
    increase(counts_[i], uint64_t{1});
    increase(sum_, seconds);
  }

  uint64_t count(int bucket) const {
    return counts_[static_cast<size_t>(bucket)].load(std::memory_order_relaxed);
  }
  double sum() const { return sum_.load(std::memory_order_relaxed); }

  // What a bucket holds is below this; the next one begins with it.
  static double upper_bound(int bucket) {
    return std::bit_cast<double>((kFirst + static_cast<uint64_t>(bucket) + 1)
                                 << kShift);
  }
  static int bucket(double seconds) {
    // Exponent and two bits of the fraction, which is where it is linear.
    auto place = static_cast<int64_t>(
        std::bit_cast<uint64_t>(std::max(seconds, 0x1p-20)) >> kShift);
    return static_cast<int>(
        std::min<int64_t>(place - static_cast<int64_t>(kFirst), kBuckets - 1));
  }

private:
  static constexpr int kShift = 50;
  static constexpr uint64_t kFirst = std::bit_cast<uint64_t>(0x1p-20) >> kShift;

  template <class T> static void increase(std::atomic<T> &value, T by) {
    value.store(value.load(std::memory_order_relaxed) + by,
                std::memory_order_relaxed);
  }

  std::array<std::atomic<uint64_t>, kBuckets> counts_{};
  std::atomic<double> sum_{0};
};

} // namespace llmc
