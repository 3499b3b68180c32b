// Parts of blocks, forks, retention priorities and host memory: which blocks
// and copies they take, and that a model on them reads the right tokens.
#include "check.h"
#include "null_runner.h"
#include "scheduler.h"
#include "sequences.h"

#include <map>

using namespace llmc;
using namespace llmc::test;
using Kind = BlockCopy::Kind;

namespace {

std::vector<BlockCopy> copies_of(KvCacheManager &kv) {
  std::vector<BlockCopy> copies;
  kv.take_copies(copies);
  return copies;
}

std::shared_ptr<Request> make_request(std::vector<int32_t> prompt, int output,
                                      std::shared_ptr<Request> leader = {}) {
  auto request = std::make_shared<Request>();
  request->sequence = sequence_of(std::move(prompt));
  request->max_total_tokens = request->sequence.num_tokens() + output;
  request->stream = std::make_shared<RequestStream>(nullptr, nullptr);
  request->leader = std::move(leader);
  return request;
}

std::vector<int32_t> numbers(int first, int count) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < count; ++i)
    tokens.push_back(first + i);
  return tokens;
}

// Runs everything to its end on a model that checks each token it reads.
struct World {
  KvCacheManager kv;
  NullRunner runner;
  Scheduler scheduler;
  std::vector<std::shared_ptr<Request>> all;

  World(int num_blocks, const SchedulerConfig &config,
        const KvCacheSettings &settings = {})
      : kv(num_blocks, 4, settings), runner(num_blocks, 4),
        scheduler(config, kv) {}

  std::shared_ptr<Request> add(std::shared_ptr<Request> request) {
    scheduler.add(request);
    all.push_back(request);
    return request;
  }
  int step() { // tokens computed
    const Batch &batch = scheduler.schedule();
    runner.run(batch, kv);
    scheduler.advance(batch);
    for (size_t i = 0; i < batch.logit_rows.size(); ++i) {
      Request &request =
          *batch.entries[static_cast<size_t>(batch.logit_rows[i].entry)]
               .request;
      request.sequence.tokens.push_back(runner.next_tokens(batch.slot)[i]);
      if (request.is_complete())
        scheduler.finish(request);
    }
    scheduler.remove_finished();
    scheduler.check();
    return batch.num_tokens;
  }
  void run() {
    for (int i = 0; scheduler.has_work(); ++i) {
      REQUIRE(i < 1000);
      step();
    }
    CHECK_EQ(kv.pool().num_used(), 0);
    CHECK_EQ(kv.host().num_used(), 0);
    for (const auto &request : all) {
      const Sequence &sequence = request->sequence;
      std::vector<int32_t> prompt(sequence.tokens.begin(),
                                  sequence.tokens.begin() +
                                      sequence.num_prompt_tokens);
      std::vector<int32_t> right = scripted_output(
          prompt, sequence.cache_salt, sequence.num_generated_tokens());
      CHECK(std::equal(right.begin(), right.end(),
                       sequence.tokens.begin() + sequence.num_prompt_tokens));
      CHECK(request->is_complete());
    }
  }
};

} // namespace

TEST(a_part_of_a_block_is_copied) {
  KvCacheManager kv(20, 4);
  Sequence a = sequence_of({1, 2, 3, 4, 5, 6, 7, 8, 9}),
           b = sequence_of({1, 2, 3, 4, 5, 6, 0, 8, 9}),
           other = sequence_of({1, 2, 3, 4, 5, 6, 0, 8, 9}, 1);
  compute(kv, a);
  compute(kv, b);
  CHECK_EQ(b.num_reused_tokens, 6);
  CHECK_EQ(kv.prefix_stats().partial_tokens, 2);
  std::vector<BlockCopy> copies = copies_of(kv);
  REQUIRE(copies.size() == 1);
  CHECK(copies[0].kind == Kind::OnDevice);
  CHECK_EQ(copies[0].source, a.blocks[1]);
  CHECK_EQ(copies[0].target, b.blocks[1]);
  compute(kv, other); // another tenant
  CHECK_EQ(other.num_reused_tokens, 0);
}

TEST(the_longest_part_is_taken) {
  KvCacheManager kv(20, 4);
  Sequence a = sequence_of({1, 2, 9, 9, 9}), b = sequence_of({1, 2, 3, 9, 9}),
           c = sequence_of({1, 7, 7, 7, 7}), d = sequence_of({1, 2, 3, 4, 5});
  for (Sequence *one : {&a, &b, &c})
    compute(kv, *one);
  copies_of(kv);
  compute(kv, d);
  CHECK_EQ(d.num_reused_tokens, 3);
  CHECK_EQ(copies_of(kv).at(0).source, b.blocks[0]);
}

TEST(the_source_of_a_part_may_be_the_block_that_is_given) {
  KvCacheManager kv(3, 4); // two blocks
  Sequence a = sequence_of({1, 2, 3, 4, 5, 6, 7, 8});
  compute(kv, a);
  kv.free(a);
  Sequence b = sequence_of({1, 2, 3, 4, 5, 6, 0});
  compute(kv, b);
  CHECK_EQ(b.num_reused_tokens, 6);
  CHECK(copies_of(kv).empty()); // it stands there already
  kv.free(b);
  kv.check({});
}

TEST(retention_priority_decides_before_age) {
  KvCacheManager kv(4, 4); // three blocks
  Sequence kept = sequence_of({1, 1, 1, 1}), old = sequence_of({2, 2, 2, 2}),
           young = sequence_of({3, 3, 3, 3});
  kept.retention_priority = 80;
  old.retention_priority = 10;
  young.retention_priority = 10;
  for (Sequence *one : {&kept, &old, &young})
    compute(kv, *one), kv.free(*one);
  auto is_known = [&](int32_t token) {
    Sequence asked = sequence_of({token, token, token, token, token});
    return kv.find_prefix(asked).entries.size() == 1;
  };
  Sequence first = sequence_of({4}), second = sequence_of({5}),
           third = sequence_of({6});
  compute(kv, first);
  CHECK(is_known(1) && !is_known(2) && is_known(3));
  compute(kv, second);
  CHECK(is_known(1) && !is_known(3));
  compute(kv, third); // nothing else is left
  CHECK(!is_known(1));
  for (Sequence *one : {&first, &second, &third})
    kv.free(*one);
  kv.check({});
}

TEST(who_shares_a_block_can_only_raise_its_priority) {
  KvCacheManager kv(20, 4);
  Sequence a = sequence_of({1, 1, 1, 1, 1});
  compute(kv, a);
  BlockId block = a.blocks[0];
  CHECK_EQ(kv.pool().retention(block), kDefaultRetention);
  for (auto [asked, expected] : {std::pair{90, 90}, {5, 90}}) {
    Sequence b = sequence_of({1, 1, 1, 1, 2});
    b.retention_priority = asked;
    compute(kv, b);
    CHECK_EQ(kv.pool().retention(block), expected);
    kv.free(b);
  }
}

TEST(forks_share_the_prompt_and_copy_its_last_block) {
  for (bool reuse : {false, true}) {
    World world(40, {.max_batch_size = 8, .max_num_tokens = 32},
                {.enable_reuse = reuse});
    auto leader = world.add(make_request(numbers(100, 11), 9));
    std::vector<std::shared_ptr<Request>> forks;
    for (int i = 0; i < 3; ++i)
      forks.push_back(world.add(make_request(numbers(100, 11), 9, leader)));
    CHECK_EQ(world.step(), 11); // once
    CHECK_EQ(world.step(), 4);  // and the last token for each
    for (const auto &fork : forks) {
      CHECK_EQ(fork->sequence.blocks[0], leader->sequence.blocks[0]);
      CHECK_EQ(fork->sequence.blocks[1], leader->sequence.blocks[1]);
      CHECK(fork->sequence.blocks[2] != leader->sequence.blocks[2]);
    }
    CHECK_EQ(world.kv.pool().num_used(), 2 + 4);
    CHECK_EQ(world.runner.num_copies[0], 3);
    CHECK_EQ(world.kv.prefix_stats().forks, 3);
    world.run();
  }
}

TEST(others_start_while_forks_wait_for_their_leader) {
  World world(100, {.max_batch_size = 3, .max_num_tokens = 8},
              {.enable_reuse = false});
  auto leader = world.add(make_request(numbers(100, 20), 4));
  auto fork = world.add(make_request(numbers(100, 20), 4, leader));
  auto other = world.add(make_request(numbers(500, 3), 4));
  world.step(), world.step();
  CHECK(fork->state == Request::State::Waiting);
  world.step(); // the end of the prompt, and room beside it
  CHECK(other->state == Request::State::Running);
  world.step();
  CHECK(fork->state == Request::State::Running);
  world.run();
  CHECK_EQ(world.kv.prefix_stats().forks, 1);
}

TEST(forks_of_a_leader_that_ended_start_by_themselves) {
  World world(100, {.max_batch_size = 3, .max_num_tokens = 8});
  auto leader = make_request(numbers(100, 20), 4);
  world.scheduler.add(leader);
  auto fork = world.add(make_request(numbers(100, 20), 4, leader));
  world.step();
  world.scheduler.finish(*leader); // cancelled
  world.scheduler.remove_finished();
  world.run();
  CHECK_EQ(world.kv.prefix_stats().forks, 0);
}

TEST(forks_belong_to_a_static_batch) {
  World world(
      100,
      {.max_batch_size = 4, .max_num_tokens = 32, .policy = LLMC_STATIC_BATCH});
  auto leader = world.add(make_request(numbers(100, 5), 9));
  auto fork = world.add(make_request(numbers(100, 5), 9, leader));
  world.step();
  auto late = world.add(make_request(numbers(300, 5), 9));
  world.step();
  CHECK(fork->state == Request::State::Running);
  CHECK(late->state == Request::State::Waiting);
  world.run();
}

TEST(a_preempted_sequence_comes_back_from_host_memory) {
  for (int host_blocks : {0, 3, 50}) { // none, too few for some, enough
    World world(9,
                {.max_batch_size = 4, // eight blocks
                 .max_num_tokens = 32,
                 .policy = LLMC_MAX_UTILIZATION},
                {.num_host_blocks = host_blocks});
    for (int i = 0; i < 4; ++i)
      world.add(make_request(numbers(100 * i, 6), 20));
    int computed = 0;
    for (int i = 0; world.scheduler.has_work() && i < 500; ++i)
      computed += world.step();
    world.run();
    CHECK(world.scheduler.num_preemptions() > 0);
    const SwapStats &swaps = world.kv.swap_stats();
    CHECK_EQ(swaps.blocks_out > 0, host_blocks > 0);
    CHECK_EQ(world.runner.num_copies[1], swaps.blocks_out);
    CHECK_EQ(world.runner.num_copies[2], swaps.blocks_in);
    if (host_blocks == 50) // nothing is computed twice
      CHECK_EQ(computed, 4 * 25);
    else
      CHECK(computed > 4 * 25 || host_blocks == 0);
  }
}

TEST(a_request_that_ends_gives_its_host_blocks_back) {
  KvCacheManager kv(20, 4, {.num_host_blocks = 5});
  Sequence a = sequence_of(numbers(1, 9)), b = sequence_of(numbers(50, 12));
  compute(kv, a), compute(kv, b);
  kv.swap_out(a);
  CHECK_EQ(kv.host().num_used(), 3);
  kv.swap_out(b); // no room for all of it
  CHECK_EQ(kv.host().num_used(), 3);
  CHECK_EQ(b.num_swapped_tokens, 0);
  const Sequence *all[] = {&a, &b};
  kv.check(all);
  kv.free(a);
  CHECK_EQ(kv.host().num_used(), 0);
  kv.check({});
}

TEST(what_host_memory_has_is_not_trusted_after_a_failure) {
  World world(9,
              {.max_batch_size = 4,
               .max_num_tokens = 32,
               .policy = LLMC_MAX_UTILIZATION},
              {.num_host_blocks = 50});
  for (int i = 0; i < 4; ++i)
    world.add(make_request(numbers(100 * i, 6), 20));
  while (world.kv.host().num_used() == 0)
    world.step();
  world.scheduler.forget_cache();
  CHECK_EQ(world.kv.host().num_used(), 0);
  CHECK_EQ(world.kv.pool().num_used(), 0);
  world.run(); // all of them, from the beginning
}

TEST_MAIN()
