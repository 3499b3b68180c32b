#include "repeated_ngrams.h"

#include <algorithm>

namespace llmc {

uint64_t RepeatedNgrams::hash(std::span<const int32_t> tokens,
                              size_t end) const {
  uint64_t h = 0;
  for (size_t i = end - (n_ - 1); i < end; ++i) {
    h = (h ^ static_cast<uint32_t>(tokens[i])) * 0x9e3779b97f4a7c15;
    h ^= h >> 32;
  }
  return h;
}

std::span<const int32_t>
RepeatedNgrams::would_repeat(std::span<const int32_t> tokens) {
  found_.clear();
  if (n_ == 0)
    return {};
  for (size_t i = std::max(num_seen_, n_ - 1); i < tokens.size(); ++i)
    ends_[hash(tokens, i)].push_back(static_cast<uint32_t>(i));
  num_seen_ = tokens.size();
  if (tokens.size() + 1 < n_)
    return {};
  auto known = ends_.find(hash(tokens, tokens.size()));
  if (known == ends_.end())
    return {};
  auto last = tokens.end() - static_cast<ptrdiff_t>(n_ - 1);
  for (uint32_t end : known->second) // hashes may collide
    if (std::equal(last, tokens.end(),
                   tokens.begin() + static_cast<ptrdiff_t>(end - (n_ - 1))))
      found_.push_back(tokens[end]);
  return found_;
}

} // namespace llmc
