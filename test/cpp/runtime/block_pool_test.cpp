#include "check.h"
#include "error.h"
#include "sequences.h"

#include <set>

using namespace llmc;
using namespace llmc::test;

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

TEST(equal_beginnings_share_their_full_blocks) {
  KvCacheManager kv(20, 4, {.enable_partial_reuse = false});
  Sequence a = sequence_of({1, 2, 3, 4, 5, 6, 7, 8, 9}),
           b = sequence_of({1, 2, 3, 4, 5, 6, 7, 8, 10, 11}),
           c = sequence_of({1, 2, 3, 4, 5, 6, 0, 8, 9});
  for (Sequence *one : {&a, &b, &c})
    compute(kv, *one);
  CHECK_EQ(a.num_reused_tokens, 0);
  CHECK_EQ(b.num_reused_tokens, 8);
  CHECK_EQ(c.num_reused_tokens, 4);
  CHECK_EQ(b.blocks[1], a.blocks[1]);
  CHECK(b.blocks[2] != a.blocks[2]);
  CHECK_EQ(kv.pool().references(a.blocks[0]), 3);
  CHECK_EQ(kv.prefix_stats().reused_tokens, 12);
}

TEST(the_last_token_is_always_computed) {
  for (bool partial : {false, true}) {
    KvCacheManager kv(20, 4, {.enable_partial_reuse = partial});
    Sequence a = sequence_of({1, 2, 3, 4, 5, 6, 7, 8}), b = a;
    compute(kv, a);
    compute(kv, b); // the second block would leave nothing to take logits from
    CHECK_EQ(b.num_reused_tokens, partial ? 7 : 4);
  }
}

TEST(a_salt_or_no_reuse_keeps_blocks_apart) {
  KvCacheManager kv(20, 4), off(20, 4, {.enable_reuse = false});
  std::vector<int32_t> tokens{1, 2, 3, 4, 5};
  Sequence a = sequence_of(tokens, 1), b = sequence_of(tokens, 2);
  compute(kv, a);
  compute(kv, b);
  CHECK_EQ(b.num_reused_tokens, 0);
  Sequence c = sequence_of(tokens), d = sequence_of(tokens);
  compute(off, c);
  compute(off, d);
  CHECK_EQ(d.num_reused_tokens, 0);
  off.free(c);
  CHECK_EQ(off.pool().num_idle(), 0);
}

TEST(idle_blocks_are_found_until_others_need_them) {
  KvCacheManager kv(5, 4); // 4 blocks
  Sequence old = sequence_of({1, 1, 1, 1, 1, 1, 1, 1}),
           young = sequence_of({2, 2, 2, 2, 2, 2, 2, 2});
  compute(kv, old);
  kv.free(old);
  compute(kv, young);
  kv.free(young);
  CHECK_EQ(kv.pool().num_used(), 0);
  CHECK_EQ(kv.pool().num_idle(), 4);
  Sequence other = sequence_of({3});
  compute(kv, other); // evicts the end of what was used longest ago
  CHECK_EQ(kv.pool().num_evictions(), 1);
  old.tokens.push_back(9), young.tokens.push_back(9);
  CHECK_EQ(kv.find_prefix(old).entries.size(), 1);
  CHECK_EQ(kv.find_prefix(young).entries.size(), 2);
  CHECK_EQ(kv.find_prefix(young).num_idle, 2);
  kv.pool().check();
}

TEST(after_a_failure_nothing_is_found) {
  KvCacheManager kv(20, 4);
  Sequence ended = sequence_of({1, 1, 1, 1, 1, 1, 1, 1, 1}),
           running = sequence_of({2, 2, 2, 2, 2, 2, 2, 2, 2});
  compute(kv, ended);
  compute(kv, running);
  kv.free(ended);
  kv.forget_prefixes();
  kv.pool().check();
  CHECK_EQ(kv.pool().num_idle(), 0);
  CHECK_EQ(kv.find_prefix(ended).entries.size(), 0);
  CHECK_EQ(kv.find_prefix(running).entries.size(), 0);
  running.tokens.insert(running.tokens.end(), 4, 2);
  REQUIRE(kv.allocate_slots(running, 4)); // it goes on with what it has
  kv.advance(running, 4);
  kv.free(running);
  kv.pool().check();
  CHECK_EQ(kv.pool().num_used(), 0);
  running.num_reused_tokens = -1;
  compute(kv, running);
  CHECK_EQ(running.num_reused_tokens,
           0); // without its beginning no block counts
}

TEST(books_that_are_wrong_are_found) {
  KvCacheManager kv_cache(8, 4);
  Sequence first, second;
  first.tokens.assign(6, 1), second.tokens.assign(3, 2);
  CHECK(kv_cache.allocate_slots(first, 6));
  CHECK(kv_cache.allocate_slots(second, 3));
  using All = std::vector<const Sequence *>;
  kv_cache.check(All{&first, &second});
  std::string message = THROWN(Error, kv_cache.check(All{&first}));
  CHECK(message.find("counts 1 owners and has 0") != std::string::npos);
  message = THROWN(Error, kv_cache.check(All{&first, &second, &second}));
  CHECK(message.find("counts 1 owners and has 2") != std::string::npos);
  second.num_computed_tokens = 5;
  message = THROWN(Error, kv_cache.check(All{&first, &second}));
  CHECK(message.find("5 tokens in the cache has 1 KV blocks") !=
        std::string::npos);
  second.num_computed_tokens = 0;
  kv_cache.free(first), kv_cache.free(second);
  kv_cache.check({});
}

TEST_MAIN()
