// The scheduler without a model: steps are pretended, tokens are numbers.
#include "check.h"
#include "scheduler.h"

#include <algorithm>
#include <map>

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
  scheduler.advance(batch);
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
  KvCacheManager kv(100, 4, {.enable_reuse = false});
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

TEST(max_utilization_preempts_the_last_and_recomputes) {
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

TEST(static_batch_takes_nobody_in) {
  KvCacheManager kv(100, 4);
  Scheduler scheduler(
      {.max_batch_size = 2, .max_num_tokens = 8, .policy = LLMC_STATIC_BATCH},
      kv);
  for (int output : {2, 9, 1})
    scheduler.add(make_request(8, output));
  std::vector<int> sizes;
  while (scheduler.has_work()) {
    const Batch &batch = scheduler.schedule();
    sizes.push_back(batch.size());
    pretend_step(scheduler, batch);
  }
  // The second prompt waits for the budget, the third request for the end of
  // both: 8 prompt tokens, then 1 + 7, then 1.
  CHECK(sizes == (std::vector<int>{1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
}

TEST(priority_moves_a_request_ahead_by_a_window) {
  KvCacheManager kv(1000, 4);
  Scheduler scheduler({.max_batch_size = 1, .max_num_tokens = 8}, kv);
  std::vector<std::shared_ptr<Request>> all;
  for (int i = 0; i < 200; ++i) {
    all.push_back(make_request(2, 1));
    all.back()->priority = i == 0 ? 1 : 0; // a lower number goes first
    scheduler.add(all.back());
  }
  std::vector<Request *> order;
  while (scheduler.has_work())
    for (Request *request : pretend_step(scheduler, scheduler.schedule()))
      order.push_back(request);
  // Its rank is that of arrival 64, which came later.
  auto place = std::find(order.begin(), order.end(), all[0].get());
  CHECK_EQ(place - order.begin(), kPriorityWindow - 1);
}

TEST(a_change_of_priority_counts_at_once) {
  KvCacheManager kv(1000, 4);
  Scheduler scheduler({.max_batch_size = 1, .max_num_tokens = 8}, kv);
  auto a = make_request(2, 1), b = make_request(2, 1);
  scheduler.add(a);
  scheduler.add(b);
  scheduler.set_priority(*b, -1);
  CHECK(scheduler.schedule().entries[0].request == b.get());
}

TEST_MAIN()
