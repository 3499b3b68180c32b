// Teacher-forced scoring through the C API on the toy engine.
#include "check.h"

#include "client.h"
#include "toy_engine.h"

#include <algorithm>
#include <random>

using namespace llmc::test;

TEST(scoring_agrees_with_generation_in_any_chunking) {
  ToyEngine toy;
  Engine engine(toy.path());
  Tokens sequence(100);
  std::mt19937 rng(3);
  for (int32_t &token : sequence)
    token = static_cast<int32_t>(rng() % 64);
  std::vector<float> expected;
  for (int chunk : {0, 1, 3, 17, 32}) {
    std::vector<float> logits(sequence.size() * 64);
    int32_t length = static_cast<int32_t>(sequence.size());
    REQUIRE(llmc_engine_forward(engine, sequence.data(), &length, 1, nullptr,
                                nullptr, chunk, logits.data(),
                                logits.size()) == LLMC_OK);
    if (expected.empty())
      expected = logits;
    CHECK(logits == expected);
  }
  for (size_t length : {1, 5, 33, 64}) { // the argmax of row length-1 is what
                                         // generation chooses after that prefix
    Tokens next =
        finish(submit(engine,
                      Tokens(sequence.begin(),
                             sequence.begin() + static_cast<ptrdiff_t>(length)),
                      greedy(1)));
    auto row = expected.begin() + static_cast<ptrdiff_t>((length - 1) * 64);
    CHECK_EQ(next[0], std::max_element(row, row + 64) - row);
  }
  CHECK_EQ(engine.stats().blocks_used, 0);
}

TEST(scoring_of_several_sequences_returns_the_chosen_rows) {
  ToyEngine toy;
  Engine engine(toy.path());
  Tokens a(40, 3), b(7, 9), c(90, 5), all;
  std::vector<int32_t> lengths{40, 7, 90}, rows{0, 39, 6, 10, 11, 89},
      num_rows{2, 1, 3};
  for (const Tokens *part : {&a, &b, &c})
    all.insert(all.end(), part->begin(), part->end());
  std::vector<float> chosen(6 * 64);
  REQUIRE(llmc_engine_forward(engine, all.data(), lengths.data(), 3,
                              rows.data(), num_rows.data(), 0, chosen.data(),
                              chosen.size()) == LLMC_OK);
  size_t out = 0, next = 0;
  for (int i = 0; i < 3; ++i) {
    const Tokens &sequence =
        *std::vector<const Tokens *>{&a, &b, &c}[static_cast<size_t>(i)];
    std::vector<float> full(sequence.size() * 64);
    REQUIRE(llmc_engine_forward(
                engine, sequence.data(), &lengths[static_cast<size_t>(i)], 1,
                nullptr, nullptr, 0, full.data(), full.size()) == LLMC_OK);
    for (int j = 0; j < num_rows[static_cast<size_t>(i)]; ++j, ++out, ++next)
      CHECK(std::equal(chosen.begin() + static_cast<ptrdiff_t>(out * 64),
                       chosen.begin() + static_cast<ptrdiff_t>(out * 64 + 64),
                       full.begin() + rows[next] * 64));
  }
}

TEST(a_buffer_of_another_size_is_refused) {
  ToyEngine toy;
  Engine engine(toy.path());
  int32_t tokens[] = {1, 2, 3}, length = 3;
  std::vector<float> logits(2 * 64);
  CHECK_EQ(llmc_engine_forward(engine, tokens, &length, 1, nullptr, nullptr, 0,
                               logits.data(), logits.size()),
           LLMC_INVALID_ARGUMENT);
  CHECK(std::string(llmc_last_error()).find("3 rows need 192 floats") !=
        std::string::npos);
}

TEST(rows_must_ascend_inside_the_sequence) {
  ToyEngine toy;
  Engine engine(toy.path());
  int32_t tokens[] = {1, 2, 3}, length = 3, count = 2;
  std::vector<float> logits(2 * 64);
  for (auto rows : {std::vector<int32_t>{1, 1}, {2, 0}, {0, 3}, {-1, 0}}) {
    CHECK_EQ(llmc_engine_forward(engine, tokens, &length, 1, rows.data(),
                                 &count, 0, logits.data(), logits.size()),
             LLMC_INVALID_ARGUMENT);
    CHECK(std::string(llmc_last_error()).find("rows must ascend") !=
          std::string::npos);
  }
}

// While requests hold blocks, scoring waits for its turn and disturbs nobody.
TEST(scoring_beside_generation_in_a_full_pool) {
  ToyEngine toy;
  llmc_engine_options options = llmc_engine_options_default();
  options.kv_cache_tokens = 128;
  Engine engine(toy.path(), options);
  llmc_sampling_params params = greedy(60);
  params.ignore_eos = 1;
  Tokens alone = finish(submit(engine, Tokens(40, 3), params));
  std::vector<llmc_request *> requests;
  for (int i = 0; i < 6; ++i)
    requests.push_back(submit(engine, Tokens(40, 3), params));
  Tokens sequence(120, 9);
  int32_t length = 120;
  std::vector<float> logits(sequence.size() * 64);
  CHECK_EQ(llmc_engine_forward(engine, sequence.data(), &length, 1, nullptr,
                               nullptr, 0, logits.data(), logits.size()),
           LLMC_OK);
  for (llmc_request *request : requests)
    CHECK(finish(request) == alone);
  CHECK_EQ(engine.stats().blocks_used, 0);
}

TEST_MAIN()
