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
  return prefix;
}

void KvCacheManager::use_prefix(Sequence &sequence, const Prefix &prefix) {
  for (const PrefixCache::Entry &entry : prefix.entries) {
    pool_.retain(entry.block);
    sequence.blocks.push_back(entry.block);
    sequence.last_content = entry.content;
  }
  int reused = static_cast<int>(prefix.entries.size()) * block_size_;
  sequence.num_known_blocks = static_cast<int>(prefix.entries.size());
  sequence.num_computed_tokens = reused;
  // A request that is resumed may find its own tokens; its caller is told about
  // the prompt as it came first.
  if (sequence.num_reused_tokens < 0)
    sequence.num_reused_tokens = reused;
  prefix_stats_.looked_up_tokens += sequence.num_tokens();
  prefix_stats_.reused_tokens += reused;
}

bool KvCacheManager::allocate_slots(Sequence &sequence, int num_new_tokens) {
  int needed =
      blocks_for(int64_t{sequence.num_computed_tokens} + num_new_tokens) -
      static_cast<int>(sequence.blocks.size());
  if (needed > pool_.num_free())
    return false;
  for (; needed > 0; --needed) {
    sequence.blocks.push_back(*pool_.allocate());
    if (enable_reuse_)
      prefixes_.forget(sequence.blocks.back());
  }
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
      pool_.set_cached(entry.block);
    // Two sequences that compute the same tokens side by side keep a block
    // each; only the first one is found later.
    sequence.last_content = entry.content;
  }
}

void KvCacheManager::check(std::span<const Sequence *const> sequences) const {
  pool_.check();
  std::vector<int> owners(static_cast<size_t>(pool_.num_usable()) + 1, 0);
  for (const Sequence *sequence : sequences) {
    for (BlockId block : sequence->blocks)
      ++owners.at(static_cast<size_t>(block));
    if (blocks_for(sequence->num_computed_tokens) >
        static_cast<int>(sequence->blocks.size()))
      fail(LLMC_INTERNAL, "a sequence with ", sequence->num_computed_tokens,
           " tokens in the cache has ", sequence->blocks.size(), " KV blocks");
  }
  for (size_t block = 1; block < owners.size(); ++block)
    if (owners[block] != pool_.references(static_cast<BlockId>(block)))
      fail(LLMC_INTERNAL, "KV block ", block, " counts ",
           pool_.references(static_cast<BlockId>(block)), " owners and has ",
           owners[block]);
}

void KvCacheManager::forget_prefixes() {
  prefixes_.forget_all();
  pool_.clear_cached();
}

void KvCacheManager::free(Sequence &sequence) {
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

} // namespace llmc
