#pragma once
// KV blocks in host memory, where preempted sequences wait. Each has one owner.

#include "error.h"

#include <cstdint>
#include <vector>

namespace llmc {

class HostBlocks {
public:
  explicit HostBlocks(int num_blocks) : used_(static_cast<size_t>(num_blocks)) {
    free_.reserve(used_.size());
    for (int32_t block = num_blocks - 1; block >= 0; --block)
      free_.push_back(block);
  }

  int num_total() const { return static_cast<int>(used_.size()); }
  int num_free() const { return static_cast<int>(free_.size()); }
  int num_used() const { return num_total() - num_free(); }
  bool is_used(int32_t block) const {
    return used_.at(static_cast<size_t>(block)) != 0;
  }

  // Only while num_free() > 0.
  int32_t allocate() {
    int32_t block = free_.back();
    free_.pop_back();
    used_[static_cast<size_t>(block)] = 1;
    return block;
  }
  void release(int32_t block) {
    if (!is_used(block))
      fail(LLMC_INTERNAL, "release of free host block ", block);
    used_[static_cast<size_t>(block)] = 0;
    free_.push_back(block);
  }

private:
  std::vector<int32_t> free_;
  std::vector<uint8_t> used_;
};

} // namespace llmc
