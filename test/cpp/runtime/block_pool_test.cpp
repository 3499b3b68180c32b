#include "check.h"
#include "error.h"
#include "kv_cache_manager.h"

#include <set>

using namespace llmc;

TEST(block_zero_is_never_given) {
  BlockPool pool(5);
  CHECK_EQ(pool.num_usable(), 4);
  std::set<BlockId> blocks;
  while (auto block = pool.allocate())
    blocks.insert(*block);
  CHECK(blocks == (std::set<BlockId>{1, 2, 3, 4}));
  CHECK_EQ(pool.num_free(), 0);
}

TEST(a_block_is_free_after_its_last_reference) {
  BlockPool pool(3);
  BlockId block = *pool.allocate();
  pool.retain(block);
  pool.release(block);
  CHECK_EQ(pool.num_used(), 1);
  CHECK_EQ(pool.references(block), 1);
  pool.release(block);
  CHECK_EQ(pool.num_used(), 0);
}

TEST(releasing_a_free_block_is_a_bug_that_is_reported) {
  BlockPool pool(3);
  BlockId block = *pool.allocate();
  pool.release(block);
  CHECK(THROWN(Error, pool.release(block)).find("free KV block") !=
        std::string::npos);
  CHECK(THROWN(Error, pool.retain(block)).find("free KV block") !=
        std::string::npos);
  CHECK(THROWN(Error, pool.release(0)).find("free KV block 0") !=
        std::string::npos);
}

TEST(allocate_slots_takes_only_what_is_missing) {
  KvCacheManager kv(11, 4);
  Sequence sequence;
  sequence.tokens.assign(20, 1);
  CHECK(kv.allocate_slots(sequence, 5));
  CHECK_EQ(sequence.blocks.size(), 2);
  sequence.num_computed_tokens = 5;
  CHECK(kv.allocate_slots(sequence, 3)); // fills block 2
  CHECK_EQ(sequence.blocks.size(), 2);
  sequence.num_computed_tokens = 8;
  CHECK(kv.allocate_slots(sequence, 1));
  CHECK_EQ(sequence.blocks.size(), 3);
  CHECK_EQ(kv.slot(sequence, 9), sequence.blocks[2] * 4 + 1);
}

TEST(allocate_slots_changes_nothing_when_full) {
  KvCacheManager kv(3, 4);
  Sequence sequence;
  sequence.tokens.assign(20, 1);
  CHECK(!kv.allocate_slots(sequence, 9));
  CHECK(sequence.blocks.empty());
  CHECK_EQ(kv.pool().num_free(), 2);
  CHECK(kv.allocate_slots(sequence, 8));
  kv.free(sequence);
  CHECK_EQ(kv.pool().num_free(), 2);
  CHECK_EQ(sequence.num_computed_tokens, 0);
}

TEST_MAIN()
