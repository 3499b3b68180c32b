#pragma once
// The KV blocks of one sequence, with a version that says whether they changed:
// the step's inputs are written again only where it did.

#include "block_pool.h"

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace llmc {

class BlockTable {
public:
  BlockTable() = default;
  BlockTable(const BlockTable &) = default;
  BlockTable &operator=(const BlockTable &) = default;
  // What was moved from is empty, and says so.
  BlockTable(BlockTable &&other) noexcept { swap(other); }
  BlockTable &operator=(BlockTable &&other) noexcept {
    BlockTable(std::move(other)).swap(*this);
    return *this;
  }

  // Two tables of equal version hold equal blocks, whosever they are. 0: empty.
  uint64_t version() const { return version_; }

  size_t size() const { return blocks_.size(); }
  bool empty() const { return blocks_.empty(); }
  BlockId operator[](size_t i) const { return blocks_[i]; }
  BlockId back() const { return blocks_.back(); }
  const BlockId *data() const { return blocks_.data(); }
  auto begin() const { return blocks_.begin(); }
  auto end() const { return blocks_.end(); }
  auto rbegin() const { return blocks_.rbegin(); }
  auto rend() const { return blocks_.rend(); }

  void push_back(BlockId block) {
    blocks_.push_back(block);
    version_ = new_version();
  }
  void set(size_t i, BlockId block) {
    blocks_[i] = block;
    version_ = new_version();
  }
  void clear() {
    blocks_.clear();
    version_ = 0;
  }
  void reserve(size_t count) { blocks_.reserve(count); }
  void swap(BlockTable &other) noexcept {
    blocks_.swap(other.blocks_);
    std::swap(version_, other.version_);
  }

private:
  // Across all engines of the process, so that it tells all tables apart.
  static uint64_t new_version() {
    static std::atomic<uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  std::vector<BlockId> blocks_;
  uint64_t version_ = 0;
};

} // namespace llmc
