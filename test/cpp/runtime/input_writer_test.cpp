// A writer that keeps what stands in its block gives the inputs that a fresh
// one writes into an empty block.
#include "check.h"
#include "input_writer.h"

#include <cstring>
#include <random>

using namespace llmc;

namespace {

constexpr int kSequences = 12, kTokens = 64, kBlock = 4, kTableWidth = 16;
const Sizes kMax{
    .T = kTokens, .S = kSequences, .R = kSequences, .NB = 0, .B = kTableWidth};

class Round {
public:
  explicit Round(uint32_t seed) : rng_(seed) {
    for (Sequence &sequence : sequences_)
      restart(sequence);
  }

  void step() {
    Batch batch;
    bool decode = pick(2) != 0; // can be padded
    for (Sequence &sequence : sequences_) {
      if (pick(6) == 0) { // ended or preempted: another one takes its row
        kv_.free(sequence);
        restart(sequence);
      }
      if (pick(4) == 0)
        continue;
      if (decode && sequence.num_uncomputed_tokens() != 1)
        sequence.num_computed_tokens = sequence.num_tokens() - 1;
      int left = kTokens - batch.num_tokens;
      int count = std::min(left, 1 + pick(sequence.num_uncomputed_tokens()));
      if (count < 1 || !kv_.allocate_slots(sequence, count))
        continue;
      batch.add(sequence, count);
      batch.want_logits(count - 1);
    }
    if (batch.empty())
      return;
    std::vector<std::byte> fresh(inputs_.bytes());
    InputWriter other(inputs_, fresh.data());
    writer_.write(batch, kv_);
    other.write(batch, kv_);
    int rows = batch.size();
    if (decode) {
      rows += pick(kSequences - rows + 1);
      writer_.pad(batch.size(), rows);
      other.pad(batch.size(), rows);
    }
    auto check_same = [&](StepInput input, const Sizes &sizes) {
      size_t bytes = static_cast<size_t>(info(input).elements(sizes)) *
                     info(info(input).dtype).bytes;
      CHECK(std::memcmp(block_.data() + inputs_.offset(input),
                        fresh.data() + inputs_.offset(input), bytes) == 0);
    };
    int64_t tokens = decode ? rows : batch.num_tokens;
    for (int i = 0; i < kNumStepInputs; ++i)
      check_same(
          static_cast<StepInput>(i),
          {.T = tokens, .S = rows, .R = rows, .NB = 0, .B = kTableWidth});
    ++steps;
    for (const BatchEntry &entry : batch.entries) {
      Sequence &sequence = *entry.sequence;
      kv_.advance(sequence, entry.num_tokens);
      if (sequence.num_uncomputed_tokens() == 0)
        sequence.tokens.push_back(pick(100));
    }
  }
  int steps = 0;

private:
  int pick(int below) {
    return static_cast<int>(rng_() % static_cast<unsigned>(below));
  }
  void restart(Sequence &sequence) {
    sequence = {};
    sequence.tokens.assign(static_cast<size_t>(1 + pick(40)), pick(3));
    KvCacheManager::Prefix prefix = kv_.find_prefix(sequence);
    kv_.use_prefix(sequence, prefix);
  }

  std::mt19937 rng_;
  const StepInputs inputs_{kMax};
  std::vector<std::byte> block_ = std::vector<std::byte>(inputs_.bytes());
  InputWriter writer_{inputs_, block_.data()};
  KvCacheManager kv_{kSequences * kTableWidth + 1, kBlock};
  Sequence sequences_[kSequences];
};

} // namespace

TEST(rows_that_stand_there_already_are_right) {
  int steps = 0;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    Round round(seed);
    for (int i = 0; i < 30; ++i)
      round.step();
    steps += round.steps;
  }
  CHECK(steps > 500);
}

TEST(versions_tell_tables_apart) {
  BlockTable a, b;
  CHECK_EQ(a.version(), 0);
  a.push_back(3);
  b.push_back(3);
  CHECK(a.version() != b.version());
  BlockTable copy = a;
  CHECK_EQ(copy.version(), a.version());
  copy.set(0, 4);
  CHECK(copy.version() != a.version());
  BlockTable moved = std::move(a);
  CHECK(a.empty() && a.version() == 0 && moved.size() == 1);
  moved.clear();
  CHECK_EQ(moved.version(), 0);
}

TEST_MAIN()
