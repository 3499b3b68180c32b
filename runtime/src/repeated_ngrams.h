#pragma once
// Which tokens would repeat an n-gram of a growing sequence.

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace llmc {

class RepeatedNgrams {
public:
  explicit RepeatedNgrams(size_t n) : n_(n) {} // 0: nothing ever repeats

  // The tokens t for which the last n tokens of (tokens, t) stand in `tokens`,
  // some maybe more than once. `tokens` goes on from that of the call before.
  // Valid until the next call.
  std::span<const int32_t> would_repeat(std::span<const int32_t> tokens);

private:
  // Of the n - 1 tokens that end before `end`.
  uint64_t hash(std::span<const int32_t> tokens, size_t end) const;

  const size_t n_;
  size_t num_seen_ = 0;
  // Where the last token of an n-gram stands, by the hash of those before it.
  std::unordered_map<uint64_t, std::vector<uint32_t>> ends_;
  std::vector<int32_t> found_;
};

} // namespace llmc
