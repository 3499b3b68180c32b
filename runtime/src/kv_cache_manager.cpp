#include "kv_cache_manager.h"

#include "error.h"

#include <algorithm>

namespace llmc {

KvCacheManager::Prefix KvCacheManager::find_prefix(const Sequence &sequence) {
  found_.clear();
  Prefix prefix;
  if (!enable_reuse_)
    return prefix;
  ContentId parent = 0;
  size_t limit = static_cast<size_t>((sequence.num_tokens() - 1) / block_size_);
  for (size_t i = 0; i < limit; ++i) {
    PrefixCache::Entry entry =
        prefixes_.find(parent, sequence.cache_salt, block_tokens(sequence, i));
    if (entry.block == 0)
      break;
    prefix.num_idle += pool_.references(entry.block) == 0;
    found_.push_back(entry);
    parent = entry.content;
  }
  prefix.entries = found_;
  if (enable_partial_reuse_) {
    size_t begin = found_.size() * static_cast<size_t>(block_size_),
           end = std::min(begin + static_cast<size_t>(block_size_),
                          static_cast<size_t>(sequence.num_tokens() - 1));
    auto [block, num_tokens] = prefixes_.find_beginning(
        parent, sequence.cache_salt,
        std::span(sequence.tokens).subspan(begin, end - begin));
    prefix.partial_block = block;
    prefix.num_partial_tokens = num_tokens;
  }
  return prefix;
}

KvCacheManager::Prefix KvCacheManager::find_fork(const Sequence &sequence,
                                                 const Sequence &leader) {
  found_.clear();
  const int shared = sequence.num_prompt_tokens - 1; // the last is its own
  Prefix prefix{.is_fork = true};
  for (size_t i = 0; i < static_cast<size_t>(shared / block_size_); ++i)
    found_.push_back({leader.blocks[i], 0});
  prefix.entries = found_;
  prefix.num_partial_tokens = shared % block_size_;
  if (prefix.num_partial_tokens > 0)
    prefix.partial_block = leader.blocks[found_.size()];
  return prefix;
}

void KvCacheManager::use_prefix(Sequence &sequence, const Prefix &prefix) {
  for (const PrefixCache::Entry &entry : prefix.entries) {
    pool_.retain(entry.block);
    sequence.blocks.push_back(entry.block);
    if (!prefix.is_fork) { // a fork's become known with its next step
      pool_.set_cached(entry.block, sequence.retention_priority);
      sequence.last_content = entry.content;
      ++sequence.num_known_blocks;
    }
  }
  int reused = static_cast<int>(prefix.entries.size()) * block_size_;
  sequence.num_computed_tokens = reused;
  if (sequence.num_swapped_tokens > reused) {
    swap_in(sequence);
  } else if (prefix.partial_block != 0) {
    // The copy is made before anything is written: whoever owns the source, it
    // may even have been the oldest idle block, which was given to us.
    BlockId target = add_block(sequence);
    if (target != prefix.partial_block)
      copies_.push_back(
          {BlockCopy::Kind::OnDevice, prefix.partial_block, target});
    reused += prefix.num_partial_tokens;
    sequence.num_computed_tokens = reused;
    prefix_stats_.partial_tokens += prefix.num_partial_tokens;
  }
  release_host_blocks(sequence);
  // A request that is resumed may find its own tokens; its caller is told about
  // the prompt as it came first.
  if (sequence.num_reused_tokens < 0)
    sequence.num_reused_tokens = reused;
  prefix_stats_.forks += prefix.is_fork;
  prefix_stats_.looked_up_tokens += sequence.num_tokens();
  prefix_stats_.reused_tokens += reused;
}

bool KvCacheManager::fork(const Sequence &parent, Sequence &child) {
  child = {};
  child.tokens.reserve(parent.tokens.capacity());
  child.tokens = parent.tokens;
  child.num_prompt_tokens = parent.num_prompt_tokens;
  child.cache_salt = parent.cache_salt;
  child.retention_priority = parent.retention_priority;
  child.num_reused_tokens = parent.num_reused_tokens;
  const int full = parent.num_computed_tokens / block_size_;
  const bool has_part = parent.num_computed_tokens % block_size_ != 0;
  if (has_part && pool_.num_free() == 0)
    return false;
  for (size_t i = 0; i < static_cast<size_t>(full); ++i) {
    pool_.retain(parent.blocks[i]);
    child.blocks.push_back(parent.blocks[i]);
  }
  if (has_part)
    copies_.push_back({BlockCopy::Kind::OnDevice,
                       parent.blocks[static_cast<size_t>(full)],
                       add_block(child)});
  child.num_computed_tokens = parent.num_computed_tokens;
  child.last_content = parent.last_content;
  child.num_known_blocks = parent.num_known_blocks;
  ++prefix_stats_.forks;
  return true;
}

void KvCacheManager::swap_in(Sequence &sequence) {
  for (size_t i = sequence.blocks.size(); i < sequence.host_blocks.size(); ++i)
    copies_.push_back({BlockCopy::Kind::ToDevice, sequence.host_blocks[i],
                       add_block(sequence)});
  swap_stats_.blocks_in += static_cast<int64_t>(sequence.host_blocks.size()) -
                           sequence.num_computed_tokens / block_size_;
  sequence.num_computed_tokens = sequence.num_swapped_tokens;
}

void KvCacheManager::swap_out(Sequence &sequence) {
  const int needed = blocks_for(sequence.num_computed_tokens),
            num_tokens = sequence.num_computed_tokens;
  if (needed > 0 && needed <= host_.num_free()) {
    for (size_t i = 0; i < static_cast<size_t>(needed); ++i) {
      sequence.host_blocks.push_back(host_.allocate());
      copies_.push_back({BlockCopy::Kind::ToHost, sequence.blocks[i],
                         sequence.host_blocks.back()});
    }
    swap_stats_.blocks_out += needed;
    sequence.num_swapped_tokens = num_tokens;
  }
  release_blocks(sequence);
}

// The pool is not full.
BlockId KvCacheManager::add_block(Sequence &sequence) {
  std::optional<BlockId> block = pool_.allocate();
  if (!block)
    fail(LLMC_INTERNAL, "the KV pool is full where it must not be");
  if (enable_reuse_)
    prefixes_.forget(*block);
  sequence.blocks.push_back(*block);
  return *block;
}

bool KvCacheManager::allocate_slots(Sequence &sequence, int num_new_tokens) {
  int needed =
      blocks_for(int64_t{sequence.num_computed_tokens} + num_new_tokens) -
      static_cast<int>(sequence.blocks.size());
  if (needed > pool_.num_free())
    return false;
  for (; needed > 0; --needed)
    add_block(sequence);
  return true;
}

void KvCacheManager::advance(Sequence &sequence, int num_tokens) {
  sequence.num_computed_tokens += num_tokens;
  publish_blocks(sequence);
}

void KvCacheManager::publish_blocks(Sequence &sequence) {
  if (!enable_reuse_)
    return;
  int known =
      std::min(sequence.num_computed_tokens, sequence.num_known_tokens());
  for (int full = known / block_size_; sequence.num_known_blocks < full;
       ++sequence.num_known_blocks) {
    size_t i = static_cast<size_t>(sequence.num_known_blocks);
    PrefixCache::Entry entry =
        prefixes_.insert(sequence.last_content, sequence.cache_salt,
                         block_tokens(sequence, i), sequence.blocks[i]);
    if (entry.block == sequence.blocks[i])
      pool_.set_cached(entry.block, sequence.retention_priority);
    // Two sequences that compute the same tokens side by side keep a block
    // each; only the first one is found later.
    sequence.last_content = entry.content;
  }
}

void KvCacheManager::check(std::span<const Sequence *const> sequences) const {
  pool_.check();
  std::vector<int> owners(static_cast<size_t>(pool_.num_usable()) + 1, 0);
  std::vector<uint8_t> on_host(static_cast<size_t>(host_.num_total()));
  for (const Sequence *sequence : sequences) {
    for (int32_t block : sequence->host_blocks)
      if (!host_.is_used(block) || on_host.at(static_cast<size_t>(block))++)
        fail(LLMC_INTERNAL, "host block ", block, " is free or has two owners");
    for (BlockId block : sequence->blocks)
      ++owners.at(static_cast<size_t>(block));
    if (blocks_for(sequence->num_computed_tokens) >
        static_cast<int>(sequence->blocks.size()))
      fail(LLMC_INTERNAL, "a sequence with ", sequence->num_computed_tokens,
           " tokens in the cache has ", sequence->blocks.size(), " KV blocks");
  }
  auto owned = std::count(on_host.begin(), on_host.end(), 1);
  if (owned != host_.num_used())
    fail(LLMC_INTERNAL, host_.num_used(), " host blocks are used, ", owned,
         " have an owner");
  for (size_t block = 1; block < owners.size(); ++block)
    if (owners[block] != pool_.references(static_cast<BlockId>(block)))
      fail(LLMC_INTERNAL, "KV block ", block, " counts ",
           pool_.references(static_cast<BlockId>(block)), " owners and has ",
           owners[block]);
}

void KvCacheManager::forget_prefixes() {
  prefixes_.forget_all();
  pool_.clear_cached();
  copies_.clear();
}

void KvCacheManager::free(Sequence &sequence) {
  release_host_blocks(sequence);
  release_blocks(sequence);
}

void KvCacheManager::release_blocks(Sequence &sequence) {
  // Last block first: among the idle ones the end of a sequence is then older
  // than its beginning, and is evicted before it.
  for (auto block = sequence.blocks.rbegin(); block != sequence.blocks.rend();
       ++block)
    pool_.release(*block);
  sequence.blocks.clear();
  sequence.num_computed_tokens = 0;
  sequence.num_known_blocks = 0;
  sequence.last_content = 0;
}

void KvCacheManager::release_host_blocks(Sequence &sequence) {
  for (int32_t block : sequence.host_blocks)
    host_.release(block);
  sequence.host_blocks.clear();
  sequence.num_swapped_tokens = 0;
}

} // namespace llmc
