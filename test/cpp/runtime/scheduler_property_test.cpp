// Random events over random configurations on a model that computes nothing.
// Each round has a seed; a failing one is printed and is run alone with
// LLMC_PROPERTY_SEED=<seed>. LLMC_PROPERTY_EVENTS sets how many events to run.
#include "check.h"
#include "null_runner.h"
#include "scheduler.h"

#include <cstdlib>
#include <map>
#include <random>
#include <set>

using namespace llmc;
using namespace llmc::test;

namespace {

using RequestPtr = std::shared_ptr<Request>;

struct Told { // what the caller of a request was told
  std::vector<int32_t> prompt, tokens;
  int endings = 0;
  bool failed = false; // cancelled, late, or in a failed step
  bool started = false, moved = false, forked = false;
  int overtaken = 0;
};

class Round {
public:
  explicit Round(uint32_t seed)
      : rng_(seed), block_size_(1 << rng_() % 5), num_blocks_(4 + pick(60)),
        config_(random_config()),
        kv_(num_blocks_, block_size_,
            {.enable_reuse = pick(4) != 0,
             .enable_partial_reuse = pick(4) != 0,
             .num_host_blocks = pick(3) * pick(num_blocks_)}),
        runner_(num_blocks_, block_size_), scheduler_(config_, kv_) {
    for (std::vector<int32_t> &prefix : prefixes_)
      for (int i = pick(5 * block_size_); i >= 0; --i)
        prefix.push_back(pick(kNullVocab));
  }

  // Number of events.
  int run() {
    int events = 0;
    for (int step = 0; step < 300; ++step) {
      for (int i = pick(4); i > 0; --i, ++events)
        random_event();
      step_once();
      ++events;
    }
    // Whatever is left ends by itself, or somebody starves.
    int64_t left = 1000;
    for (const auto &request : all_)
      left += 2 * request->max_total_tokens;
    for (int64_t i = 0; scheduler_.has_work(); ++i, ++events) {
      REQUIRE(i < left * 4);
      step_once();
    }
    CHECK_EQ(kv_.pool().num_used(), 0);
    CHECK_EQ(kv_.host().num_used(), 0);
    for (const auto &request : all_)
      check_output(*request);
    return events;
  }

private:
  int pick(int below) {
    return static_cast<int>(rng_() % static_cast<unsigned>(below));
  }
  SchedulerConfig random_config() {
    SchedulerConfig config;
    config.max_batch_size = 1 + pick(12);
    config.max_num_tokens = config.max_batch_size + pick(40);
    config.policy = static_cast<llmc_policy>(pick(3));
    return config;
  }
  RequestPtr random_request() {
    return all_.empty()
               ? nullptr
               : all_[static_cast<size_t>(pick(static_cast<int>(all_.size())))];
  }

  void random_event() {
    switch (pick(8)) {
    case 0: // cancel, disconnect or deadline
      if (RequestPtr request = random_request();
          request && request->state != Request::State::Finished) {
        end(*request, true);
        scheduler_.remove_finished();
      }
      break;
    case 1:
      if (RequestPtr request = random_request();
          request && request->state != Request::State::Finished) {
        told_[request.get()].moved = true;
        scheduler_.set_priority(*request, pick(7) - 3);
      }
      break;
    case 2: { // scoring takes any free blocks between two steps
      Sequence scored;
      scored.tokens.assign(static_cast<size_t>(num_blocks_) *
                               static_cast<size_t>(block_size_),
                           1);
      int want = 1 + pick(num_blocks_ * block_size_);
      if (kv_.allocate_slots(scored, want))
        kv_.free(scored);
      break;
    }
    case 3:
      fail_next_step_ = pick(10) == 0;
      break;
    default:
      submit();
    }
  }

  void submit() {
    int capacity = kv_.pool().num_usable() * block_size_;
    int total = 2 + pick(capacity); // total - 1 tokens are cached
    auto request = std::make_shared<Request>();
    std::vector<int32_t> &tokens = request->sequence.tokens;
    if (pick(2)) // equal beginnings, so that there is something to share
      tokens = prefixes_[static_cast<size_t>(pick(4))];
    for (int i = pick(1 + capacity / (1 + pick(8))); i >= 0; --i)
      tokens.push_back(pick(kNullVocab));
    if (static_cast<int>(tokens.size()) > total - 1)
      tokens.resize(static_cast<size_t>(total - 1));
    request->sequence.num_prompt_tokens = static_cast<int>(tokens.size());
    request->sequence.cache_salt = static_cast<uint64_t>(pick(2));
    request->sequence.retention_priority = pick(kMaxRetention + 1);
    if (pick(5) == 0 && submit_beams(*request, total))
      return;
    RequestPtr leader;
    for (int forks = pick(3) ? 0 : pick(6); forks >= 0; --forks) {
      auto one = std::make_shared<Request>();
      one->sequence = request->sequence;
      one->max_total_tokens =
          std::min(total, static_cast<int>(tokens.size()) + 1 + pick(60));
      one->priority = pick(7) - 3;
      one->stream = std::make_shared<RequestStream>(nullptr, nullptr);
      one->leader = leader;
      if (leader)
        told_[one.get()].forked = true;
      else
        leader = one;
      told_[one.get()].prompt = tokens;
      all_.push_back(one);
      scheduler_.add(one);
    }
  }

  // The beams of one search. False when they can never run.
  bool submit_beams(const Request &first, int total) {
    const int width = 2 + pick(4);
    if (width > config_.max_batch_size ||
        width * kv_.blocks_for(total - 1) > kv_.pool().num_usable())
      return false;
    std::vector<RequestPtr> members;
    for (int i = 0; i < width; ++i) {
      auto one = std::make_shared<Request>();
      one->sequence = first.sequence;
      one->max_total_tokens = total;
      one->stream = std::make_shared<RequestStream>(nullptr, nullptr);
      one->priority = i == 0 ? pick(7) - 3 : 0; // the first one's counts
      told_[one.get()].prompt = first.sequence.tokens;
      all_.push_back(one);
      members.push_back(one);
    }
    auto group = std::make_shared<BeamGroup>(
        BeamSearch({.width = width}, {}, total), members);
    for (const RequestPtr &one : members)
      one->group = group;
    scheduler_.add(members.front());
    return true;
  }

  // A beam's row is computed. When all are, the search goes on at random, as no
  // real one would, with any number of beams.
  void take_offer(Request &beam) {
    BeamGroup &group = *beam.group;
    for (size_t i = 0; i < group.num_beams; ++i)
      if (group.members[i].get() == &beam)
        group.has_offer[i] = 1;
    for (size_t i = 0; i < group.num_beams; ++i)
      if (!group.has_offer[i])
        return;
    if (beam.sequence.num_tokens() + 1 >= beam.max_total_tokens ||
        pick(40) == 0) {
      end(beam, false);
      return;
    }
    std::vector<BeamSearch::Choice> choices;
    std::vector<std::vector<int32_t>> tokens;
    for (int i = 1 + pick(static_cast<int>(group.members.size())); i > 0; --i) {
      int parent = pick(static_cast<int>(group.num_beams));
      choices.push_back({parent, pick(kNullVocab)});
      const Request *before = group.members[static_cast<size_t>(parent)].get();
      tokens.push_back(told_[before].tokens);
      tokens.back().push_back(choices.back().token);
    }
    scheduler_.continue_beams(group, choices);
    beam_steps_ += 1;
    CHECK_EQ(group.num_beams, choices.size());
    for (size_t i = 0; i < choices.size(); ++i) {
      const Request &member = *group.members[i];
      Told &told = told_[&member];
      told.tokens = tokens[i];
      std::vector<int32_t> whole = told.prompt;
      whole.insert(whole.end(), tokens[i].begin(), tokens[i].end());
      CHECK(member.sequence.tokens == whole);
    }
    for (size_t i = choices.size(); i < group.members.size(); ++i)
      CHECK(group.members[i]->sequence.blocks.empty());
  }

  void end(Request &request, bool failed) {
    std::vector<RequestPtr> others;
    if (request.group)
      others = request.group->members;
    scheduler_.finish(request);
    auto note = [&](Request &one) {
      CHECK(one.sequence.blocks.empty());
      CHECK(one.state == Request::State::Finished);
      Told &told = told_[&one];
      ++told.endings;
      told.failed = failed;
    };
    if (others.empty())
      note(request);
    for (const RequestPtr &one : others)
      note(*one);
  }

  void step_once() {
    std::set<Request *> waited;
    for (const auto &request : scheduler_.waiting())
      waited.insert(request.get());
    const Batch &batch = scheduler_.schedule();
    CHECK_EQ(batch.empty(), !scheduler_.has_work()); // progress
    check_batch(batch, waited);
    check_order(waited);
    for (const auto &request : scheduler_.waiting())
      recomputed_ += kv_.host().num_total() > 0 &&
                     !waited.count(request.get()) &&
                     request->sequence.host_blocks.empty();
    check_blocks();
    if (std::exchange(fail_next_step_, false)) {
      for (const BatchEntry &entry : batch.entries)
        if (entry.request->state != Request::State::Finished)
          end(*entry.request, true);
      scheduler_.remove_finished();
      scheduler_.forget_cache();
    } else {
      runner_.run(batch, kv_); // throws when a block holds wrong tokens
      scheduler_.advance(batch);
      for (size_t i = 0; i < batch.logit_rows.size(); ++i) {
        Request &request =
            *batch.entries[static_cast<size_t>(batch.logit_rows[i].entry)]
                 .request;
        Told &told = told_[&request];
        CHECK_EQ(batch.logit_rows[i].sample_index, told.tokens.size());
        if (request.group) {
          take_offer(request);
          continue;
        }
        request.sequence.tokens.push_back(runner_.next_tokens(batch.slot)[i]);
        told.tokens.push_back(runner_.next_tokens(batch.slot)[i]);
        if (request.sequence.num_tokens() >= request.max_total_tokens)
          end(request, false);
      }
    }
    scheduler_.remove_finished();
    scheduler_.forget_removed();
    check_blocks();
  }

  void check_batch(const Batch &batch, const std::set<Request *> &waited) {
    CHECK(batch.num_tokens <= config_.max_num_tokens);
    CHECK(batch.size() <= config_.max_batch_size);
    CHECK(static_cast<int>(scheduler_.running().size()) <=
          config_.max_batch_size);
    int tokens = 0;
    std::set<Request *> served;
    for (const BatchEntry &entry : batch.entries) {
      tokens += entry.num_tokens;
      CHECK(served.insert(entry.request).second);
      CHECK(entry.num_tokens > 0 &&
            entry.num_tokens <= entry.sequence->num_uncomputed_tokens());
      CHECK(static_cast<int>(entry.sequence->blocks.size()) * block_size_ >=
            entry.sequence->num_computed_tokens + entry.num_tokens);
    }
    CHECK_EQ(tokens, batch.num_tokens);
    if (config_.policy == LLMC_MAX_UTILIZATION)
      return;
    // Nothing is evicted; of the requests that ran before, every decode gets
    // its token in every step, and the first prompt makes progress beside them.
    CHECK_EQ(scheduler_.num_preemptions(), 0);
    bool first_prompt = true;
    for (const auto &request : scheduler_.running()) {
      if (waited.count(request.get()))
        continue;
      const int left = request->sequence.num_uncomputed_tokens();
      const bool decode = left == 1;
      if (left == 0)
        continue; // a beam that waits for the others of its search
      if (decode || std::exchange(first_prompt, false))
        CHECK(served.count(request.get()) == 1);
    }
  }

  // Admission follows the rank, and nobody is overtaken too often.
  void check_order(const std::set<Request *> &waited) {
    for (size_t i = 1; i < scheduler_.waiting().size(); ++i)
      CHECK(scheduler_.waiting()[i - 1]->goes_before(*scheduler_.waiting()[i]));
    // Forks let others go first while their leader computes the prompt.
    auto first =
        std::ranges::find_if(scheduler_.waiting(), [](const auto &one) {
          return !waits_for_leader(*one);
        });
    for (const auto &request : scheduler_.running()) {
      if (!waited.count(request.get()))
        continue;
      const bool is_part_of_batch =
          config_.policy == LLMC_STATIC_BATCH && told_[request.get()].forked;
      if (first != scheduler_.waiting().end() && !is_part_of_batch)
        CHECK(request->goes_before(**first));
      Told &told = told_[request.get()];
      if (std::exchange(told.started, true))
        continue;
      for (const auto &other : scheduler_.waiting())
        if (other->arrival < request->arrival && !told_[other.get()].started &&
            !waits_for_leader(*other) && !is_part_of_batch)
          ++told_[other.get()].overtaken;
      if (!told.moved && !any_moved())
        CHECK(told.overtaken <= kPriorityWindow * (request->priority + 3));
    }
  }
  static bool waits_for_leader(const Request &request) {
    return request.leader && request.leader->state == Request::State::Running;
  }
  bool any_moved() const {
    for (const auto &[request, told] : told_)
      if (told.moved)
        return true;
    return false;
  }

  // Each block belongs to as many sequences as it has references, and two have
  // it only when all tokens up to its end are the same.
  void check_blocks() {
    kv_.pool().check();
    std::map<BlockId, std::vector<const Sequence *>> owners;
    for (const auto &request : scheduler_.running())
      for (BlockId block : request->sequence.blocks)
        owners[block].push_back(&request->sequence);
    for (const auto &request : scheduler_.waiting())
      CHECK(request->sequence.blocks.empty() &&
            request->sequence.num_computed_tokens == 0);
    scheduler_.check();
    CHECK_EQ(kv_.pool().num_used(), owners.size());
    for (const auto &[block, sequences] : owners) {
      CHECK(block > 0 && block < num_blocks_);
      CHECK_EQ(kv_.pool().references(block), sequences.size());
      const Sequence &first = *sequences[0];
      auto place = std::find(first.blocks.begin(), first.blocks.end(), block) -
                   first.blocks.begin();
      ptrdiff_t end = (place + 1) * block_size_;
      for (size_t i = 1; i < sequences.size(); ++i) {
        const Sequence &other = *sequences[i];
        CHECK_EQ(other.blocks[static_cast<size_t>(place)], block);
        CHECK(first.num_computed_tokens >= end &&
              other.num_computed_tokens >= end);
        CHECK_EQ(first.cache_salt, other.cache_salt);
        CHECK(std::equal(first.tokens.begin(), first.tokens.begin() + end,
                         other.tokens.begin()));
      }
    }
  }

  void check_output(const Request &request) {
    const Told &told = told_[&request];
    CHECK_EQ(told.endings, 1);
    int expected =
        request.max_total_tokens - request.sequence.num_prompt_tokens;
    if (request.group)
      return; // chosen at random
    if (!told.failed)
      CHECK_EQ(told.tokens.size(), expected);
    CHECK(told.tokens == scripted_output(told.prompt,
                                         request.sequence.cache_salt,
                                         static_cast<int>(told.tokens.size())));
  }

  std::mt19937 rng_;
  const int block_size_, num_blocks_;
  const SchedulerConfig config_;
  KvCacheManager kv_;
  NullRunner runner_;
  Scheduler scheduler_;
  std::vector<int32_t> prefixes_[4];
  std::vector<RequestPtr> all_;
  std::map<const Request *, Told> told_;
  bool fail_next_step_ = false;
  int64_t beam_steps_ = 0;
  int64_t recomputed_ = 0; // preempted without a place in host memory

public:
  int64_t reused() const { return kv_.prefix_stats().reused_tokens; }
  int64_t evictions() const { return kv_.pool().num_evictions(); }
  int64_t preemptions() const { return scheduler_.num_preemptions(); }
  int64_t partial() const { return kv_.prefix_stats().partial_tokens; }
  int64_t forks() const { return kv_.prefix_stats().forks; }
  int64_t swapped_in() const { return kv_.swap_stats().blocks_in; }
  int64_t beam_steps() const { return beam_steps_; }
  int64_t recomputed() const { return recomputed_; }
};

int64_t from_environment(const char *name, int64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

} // namespace

TEST(random_events_keep_the_invariants) {
  const int64_t only = from_environment("LLMC_PROPERTY_SEED", -1);
  const int64_t wanted = from_environment("LLMC_PROPERTY_EVENTS", 100000);
  int64_t events = 0, reused = 0, evictions = 0, preemptions = 0, partial = 0,
          forks = 0, swapped_in = 0, recomputed = 0, beam_steps = 0;
  int rounds = 0;
  for (uint32_t seed = only >= 0 ? static_cast<uint32_t>(only) : 1;
       events < wanted; ++seed, ++rounds) {
    int failures = check::failures();
    Round round(seed);
    try {
      events += round.run();
    } catch (const Error &error) {
      check::report(false, __FILE__, __LINE__, error.what());
    } catch (const check::Stop &) {
    }
    reused += round.reused();
    evictions += round.evictions();
    preemptions += round.preemptions();
    partial += round.partial(), forks += round.forks();
    beam_steps += round.beam_steps();
    swapped_in += round.swapped_in(), recomputed += round.recomputed();
    if (check::failures() != failures) {
      std::printf("replay with LLMC_PROPERTY_SEED=%u\n", seed);
      return;
    }
    if (only >= 0)
      return;
  }
  using Count = long long;
  std::printf(
      "%lld events in %d rounds: %lld tokens reused, %lld of parts of "
      "blocks, %lld evictions, %lld preemptions, %lld of them without "
      "room on the host, %lld blocks swapped in, %lld forks, %lld steps of "
      "beam searches\n",
      Count{events}, rounds, Count{reused}, Count{partial}, Count{evictions},
      Count{preemptions}, Count{recomputed}, Count{swapped_in}, Count{forks},
      Count{beam_steps});
  // Without these the test would prove nothing about them.
  CHECK(reused > 0);
  CHECK(evictions > 0);
  CHECK(preemptions > 0);
  CHECK(partial > 0 && forks > 0 && swapped_in > 0 && recomputed > 0);
  CHECK(beam_steps > 1000);
}

TEST_MAIN()
