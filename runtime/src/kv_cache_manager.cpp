#include "kv_cache_manager.h"

namespace llmc {

bool KvCacheManager::allocate_slots(Sequence &sequence, int num_new_tokens) {
  int needed =
      blocks_for(int64_t{sequence.num_computed_tokens} + num_new_tokens) -
      static_cast<int>(sequence.blocks.size());
  if (needed > pool_.num_free())
    return false;
  for (; needed > 0; --needed)
    sequence.blocks.push_back(*pool_.allocate());
  return true;
}

void KvCacheManager::free(Sequence &sequence) {
  // Last block first: the pool hands out what came back last, and a sequence's
  // first blocks are the ones worth keeping.
  for (auto block = sequence.blocks.rbegin(); block != sequence.blocks.rend();
       ++block)
    pool_.release(*block);
  sequence.blocks.clear();
  sequence.num_computed_tokens = 0;
}

} // namespace llmc
