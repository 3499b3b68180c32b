// The scheduler without a model: steps are pretended, tokens are numbers.
#include "check.h"
#include "scheduler.h"

#include <map>
#include <random>
#include <set>

using namespace llmc;

namespace {

std::shared_ptr<Request> make_request(int prompt, int output) {
  auto request = std::make_shared<Request>();
  request->sequence.tokens.assign(static_cast<size_t>(prompt), 1);
  request->sequence.num_prompt_tokens = prompt;
  request->max_total_tokens = prompt + output;
  request->stream = std::make_shared<RequestStream>(nullptr, nullptr);
  return request;
}

// What the executor does after a step. Returns the requests that ended.
std::vector<Request *> pretend_step(Scheduler &scheduler, const Batch &batch) {
  std::vector<Request *> ended;
  for (const BatchEntry &entry : batch.entries)
    entry.sequence->num_computed_tokens += entry.num_tokens;
  for (const LogitRow &row : batch.logit_rows) {
    Request &request = *batch.entries[static_cast<size_t>(row.entry)].request;
    request.sequence.tokens.push_back(static_cast<int32_t>(row.sample_index) +
                                      100);
    if (request.sequence.num_tokens() >= request.max_total_tokens) {
      scheduler.finish(request);
      ended.push_back(&request);
    }
  }
  scheduler.remove_finished();
  return ended;
}

} // namespace

TEST(a_long_prompt_is_cut_into_chunks) {
  KvCacheManager kv(100, 4);
  Scheduler scheduler({.max_batch_size = 4, .max_num_tokens = 10}, kv);
  scheduler.add(make_request(25, 2));
  std::vector<int> chunks, rows;
  for (int i = 0; i < 4; ++i) {
    Batch batch = scheduler.schedule();
    chunks.push_back(batch.num_tokens);
    rows.push_back(static_cast<int>(batch.logit_rows.size()));
    pretend_step(scheduler, batch);
  }
  CHECK(chunks == (std::vector<int>{10, 10, 5, 1}));
  CHECK(rows == (std::vector<int>{0, 0, 1, 1}));
  CHECK(!scheduler.has_work());
  CHECK_EQ(kv.pool().num_used(), 0);
}

TEST(a_long_prompt_does_not_starve_decodes) {
  KvCacheManager kv(1000, 4);
  Scheduler scheduler({.max_batch_size = 4, .max_num_tokens = 8}, kv);
  auto decode = make_request(3, 100), prompt = make_request(200, 5);
  scheduler.add(decode);
  pretend_step(scheduler, scheduler.schedule());
  scheduler.add(prompt);
  for (int i = 0; i < 20; ++i) {
    Batch batch = scheduler.schedule();
    CHECK_EQ(batch.entries[0].request == decode.get(), true);
    CHECK_EQ(batch.num_tokens, 8);
    pretend_step(scheduler, batch);
  }
}

TEST(requests_join_and_leave_at_every_step) {
  KvCacheManager kv(100, 4);
  Scheduler scheduler({.max_batch_size = 2, .max_num_tokens = 64}, kv);
  for (int output : {1, 2, 3})
    scheduler.add(make_request(4, output));
  Batch first = scheduler.schedule();
  CHECK_EQ(first.size(), 2);
  pretend_step(scheduler, first); // the first request ends
  Batch second = scheduler.schedule();
  CHECK_EQ(second.size(), 2);
  CHECK_EQ(second.num_tokens, 1 + 4);
}

TEST(guaranteed_no_evict_reserves_the_worst_case) {
  KvCacheManager kv(11, 4); // 10 blocks
  Scheduler scheduler({.max_batch_size = 8, .max_num_tokens = 64}, kv);
  scheduler.add(make_request(4, 21)); // 24 cached tokens: 6 blocks
  scheduler.add(make_request(4, 14)); // 17: 5 blocks, must wait
  scheduler.add(make_request(4, 1));  // would fit, but nobody overtakes
  Batch batch = scheduler.schedule();
  CHECK_EQ(batch.size(), 1);
  while (scheduler.running().size() == 1 && scheduler.waiting().size() == 2)
    pretend_step(scheduler, batch), batch = scheduler.schedule();
  CHECK_EQ(batch.size(), 2);
}

TEST(max_utilization_preempts_the_youngest_and_recomputes) {
  KvCacheManager kv(7, 4); // 6 blocks
  Scheduler scheduler({.max_batch_size = 8,
                       .max_num_tokens = 64,
                       .policy = LLMC_MAX_UTILIZATION},
                      kv);
  auto old = make_request(8, 12),
       young = make_request(8, 12); // 5 blocks each at the end
  scheduler.add(old);
  scheduler.add(young);
  std::map<Request *, int> ended;
  for (int i = 0; scheduler.has_work() && i < 200; ++i)
    for (Request *request : pretend_step(scheduler, scheduler.schedule()))
      ended[request] = i;
  CHECK_EQ(ended.size(), 2);
  CHECK(ended[old.get()] < ended[young.get()]);
  CHECK(scheduler.num_preemptions() > 0);
  for (int i = 0; i < 12;
       ++i) { // tokens kept their order, sample indexes went on counting
    CHECK_EQ(old->sequence.tokens[static_cast<size_t>(8 + i)], 100 + i);
    CHECK_EQ(young->sequence.tokens[static_cast<size_t>(8 + i)], 100 + i);
  }
}

// Random events over random configurations; after each step: budgets kept, no
// block lost or shared, reserved never exceeded, admission in order, progress.
TEST(random_events_keep_the_invariants) {
  std::mt19937 rng(42);
  int64_t events = 0;
  for (int round = 0; events < 100000; ++round) {
    int num_blocks = 4 + static_cast<int>(rng() % 60),
        block_size = 1 << rng() % 5;
    SchedulerConfig config;
    config.max_batch_size = 1 + static_cast<int>(rng() % 12);
    config.max_num_tokens =
        config.max_batch_size + static_cast<int>(rng() % 40);
    config.policy = round % 2 ? LLMC_MAX_UTILIZATION : LLMC_GUARANTEED_NO_EVICT;
    KvCacheManager kv(num_blocks, block_size);
    Scheduler scheduler(config, kv);
    std::vector<std::shared_ptr<Request>> all;
    std::map<Request *, int> endings;
    std::set<Request *> started;
    size_t next_to_start = 0;
    bool idle = false;
    for (int step = 0; step < 400 || !idle; ++step) {
      ++events;
      if (step < 400 && rng() % 3 == 0) {
        int capacity = kv.pool().num_usable() * block_size;
        int total =
            2 + static_cast<int>(rng() %
                                 static_cast<unsigned>(
                                     capacity)); // total - 1 tokens are cached
        int prompt =
            1 + static_cast<int>(rng() % static_cast<unsigned>(total - 1));
        all.push_back(make_request(prompt, total - prompt));
        scheduler.add(all.back());
      }
      if (!all.empty() && rng() % 10 == 0) {
        ++events;
        const auto &victim = all[rng() % all.size()];
        if (!endings.count(victim.get())) {
          scheduler.finish(*victim);
          scheduler.remove_finished();
          CHECK(victim->sequence.blocks.empty());
          ++endings[victim.get()];
        }
      }
      Batch batch = scheduler.schedule();
      idle = !scheduler.has_work();
      CHECK_EQ(batch.empty(), idle); // progress: never a step without work
      CHECK(batch.num_tokens <= config.max_num_tokens);
      CHECK(batch.size() <= config.max_batch_size);
      int tokens = 0;
      std::set<Request *> in_batch;
      for (const BatchEntry &entry : batch.entries) {
        tokens += entry.num_tokens;
        CHECK(in_batch.insert(entry.request).second);
        CHECK(entry.num_tokens > 0 &&
              entry.num_tokens <= entry.sequence->num_uncomputed_tokens());
        CHECK(static_cast<int>(entry.sequence->blocks.size()) * block_size >=
              entry.sequence->num_computed_tokens + entry.num_tokens);
      }
      CHECK_EQ(tokens, batch.num_tokens);
      // First come, first served: nobody starts before somebody who came
      // earlier.
      for (const auto &request : scheduler.running())
        started.insert(request.get());
      while (next_to_start < all.size() &&
             (started.count(all[next_to_start].get()) ||
              endings.count(all[next_to_start].get())))
        ++next_to_start;
      for (size_t i = next_to_start; i < all.size(); ++i)
        CHECK(!started.count(all[i].get()));
      std::set<BlockId> owned;
      int num_owned = 0;
      for (const auto &request : scheduler.running())
        for (BlockId block : request->sequence.blocks) {
          CHECK(block > 0 && block < num_blocks);
          owned.insert(block);
          ++num_owned;
        }
      for (const auto &request : scheduler.waiting())
        CHECK(request->sequence.blocks.empty() &&
              request->sequence.num_computed_tokens == 0);
      CHECK_EQ(owned.size(), num_owned); // no block belongs to two
      CHECK_EQ(kv.pool().num_used(), num_owned);
      for (Request *request : pretend_step(scheduler, batch))
        ++endings[request];
      if (config.policy == LLMC_GUARANTEED_NO_EVICT)
        CHECK_EQ(scheduler.num_preemptions(), 0);
    }
    CHECK_EQ(kv.pool().num_used(), 0);
    CHECK_EQ(endings.size(), all.size());
    for (const auto &request : all) {
      CHECK_EQ(endings[request.get()], 1);
      for (int i = 0; i < request->sequence.num_generated_tokens(); ++i)
        CHECK_EQ(request->sequence.tokens[static_cast<size_t>(
                     request->sequence.num_prompt_tokens + i)],
                 100 + i);
    }
  }
}

TEST_MAIN()
