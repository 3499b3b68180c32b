#include "block_pool.h"

#include "error.h"

#include <algorithm>

namespace llmc {

BlockPool::BlockPool(int num_blocks)
    : references_(static_cast<size_t>(num_blocks), 0),
      cached_(static_cast<size_t>(num_blocks), 0),
      links_(static_cast<size_t>(num_blocks) + kMaxRetention + 1) {
  for (int retention = 0; retention <= kMaxRetention; ++retention)
    link(ring(retention)) = {ring(retention), ring(retention)};
  empty_.reserve(static_cast<size_t>(num_blocks));
  for (BlockId block = num_blocks - 1; block >= 1; --block)
    empty_.push_back(block);
}

void BlockPool::append_idle(BlockId block) {
  BlockId anchor = ring(retention(block)), last = link(anchor).older;
  link(block) = {.older = last, .newer = anchor};
  link(last).newer = block;
  link(anchor).older = block;
  ++num_idle_;
}

// Only while there are idle blocks.
BlockId BlockPool::first_to_evict() const {
  int retention = 0;
  auto oldest = [&] {
    return links_[static_cast<size_t>(ring(retention))].newer;
  };
  while (oldest() == ring(retention))
    ++retention;
  return oldest();
}

void BlockPool::remove_idle(BlockId block) {
  Link here = link(block);
  link(here.older).newer = here.newer;
  link(here.newer).older = here.older;
  --num_idle_;
}

std::optional<BlockId> BlockPool::allocate() {
  BlockId block;
  if (!empty_.empty()) {
    block = empty_.back();
    empty_.pop_back();
  } else if (num_idle_ > 0) {
    block = first_to_evict();
    remove_idle(block);
    cached_[static_cast<size_t>(block)] = 0;
    ++num_evictions_;
  } else {
    return std::nullopt;
  }
  references_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockPool::retain(BlockId block) {
  int &count = references_.at(static_cast<size_t>(block));
  if (block == 0 || (count == 0 && !is_cached(block)))
    fail(LLMC_INTERNAL, "retain of free KV block ", block);
  if (count == 0)
    remove_idle(block);
  ++count;
}

void BlockPool::release(BlockId block) {
  int &count = references_.at(static_cast<size_t>(block));
  if (block == 0 || count == 0)
    fail(LLMC_INTERNAL, "release of free KV block ", block);
  if (--count > 0)
    return;
  if (is_cached(block))
    append_idle(block);
  else
    empty_.push_back(block);
}

void BlockPool::set_cached(BlockId block, int retention) {
  if (block == 0 || references_.at(static_cast<size_t>(block)) == 0)
    fail(LLMC_INTERNAL, "KV block ", block, " is cached while free");
  uint8_t &cached = cached_[static_cast<size_t>(block)];
  cached = std::max(cached, static_cast<uint8_t>(retention + 1));
}

void BlockPool::clear_cached() {
  while (num_idle_ > 0) {
    BlockId block = first_to_evict();
    remove_idle(block);
    empty_.push_back(block);
  }
  std::fill(cached_.begin(), cached_.end(), uint8_t{0});
}

void BlockPool::check() const {
  std::vector<uint8_t> seen(references_.size(), 0);
  auto visit = [&](BlockId block, bool cached) {
    size_t i = static_cast<size_t>(block);
    if (block == 0 || seen.at(i)++ || references_[i] != 0 ||
        (cached_[i] != 0) != cached)
      fail(LLMC_INTERNAL, "KV block ", block, " is on a free list with ",
           references_[i], " references, cached ", int{cached_[i]});
  };
  for (BlockId block : empty_)
    visit(block, false);
  int idle = 0;
  for (int one = 0; one <= kMaxRetention; ++one)
    for (BlockId block = links_[static_cast<size_t>(ring(one))].newer;
         block != ring(one);
         block = links_[static_cast<size_t>(block)].newer, ++idle) {
      visit(block, true);
      if (retention(block) != one)
        fail(LLMC_INTERNAL, "KV block ", block, " of retention priority ",
             retention(block), " waits among those of ", one);
    }
  int unused = 0;
  for (size_t i = 1; i < references_.size(); ++i)
    unused += references_[i] == 0;
  if (idle != num_idle_ || unused != num_free())
    fail(LLMC_INTERNAL, "the KV pool counts ", num_free(), " free blocks (",
         num_idle_, " idle), its blocks say ", unused, " (", idle, ")");
}

} // namespace llmc
