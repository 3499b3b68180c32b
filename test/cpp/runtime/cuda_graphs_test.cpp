// Replay of decode steps as graphs, on the stand-in for libcuda: which steps
// are replayed, what padding the kernels see, and what the driver may refuse.
#include "fake_gpu.h"
#include "step_inputs.h"

using namespace llmc;
using namespace llmc::test;
using nlohmann::json;

namespace {

using Logits = std::vector<float>;

llmc_engine_options eager() {
  llmc_engine_options result = options();
  result.cuda_graphs = 0;
  return result;
}

// One step of `count` one-token sequences: T = S = R.
Logits step_of(Engine &engine, int count) {
  static const Tokens tokens = {3, 1, 4, 15, 9, 2, 6, 53};
  std::vector<ForwardSequence> sequences(static_cast<size_t>(count));
  for (size_t i = 0; i < sequences.size(); ++i)
    sequences[i] = {std::span(tokens).subspan(i, 1), {0}};
  Logits logits(sequences.size() * 64);
  engine.score(sequences, 0, logits.data());
  return logits;
}

Tokens generate(Engine &engine, const Tokens &prompt, SamplingParams params) {
  return read_all(*engine.submit(prompt, std::move(params), nullptr, nullptr));
}

// The step inputs that the last step uploaded.
template <class T>
std::vector<T> uploaded(StepInput input, int count, int first = 0) {
  StepInputs inputs({.T = 32, .S = 8, .R = 8, .NB = 0, .B = 32});
  auto *block = static_cast<std::byte *>(const_cast<void *>(cuda().uploaded));
  T *data = inputs.data<T>(block, input) + first;
  return {data, data + count};
}

} // namespace

TEST(decode_steps_are_replayed_and_others_are_not) {
  ToyEngine toy(for_gpu);
  {
    auto engine = Engine::load(toy.path(), options());
    int64_t launches = cuda().launches, captures = cuda().captures;
    Tokens tokens = generate(*engine, {1, 2, 3}, greedy(10));
    CHECK_EQ(tokens.size(), 10);
    CHECK_EQ(engine->stats().num_steps, 10);
    CHECK_EQ(engine->stats().num_graphs, 1);
    CHECK_EQ(engine->stats().graph_launches, 9); // all but the prompt's
    CHECK_EQ(cuda().captures - captures, 1);
    CHECK_EQ(cuda().launches - launches, 20); // recording runs nothing
    CHECK(generate(*engine, {1, 2, 3}, greedy(10)) == tokens);
    CHECK_EQ(engine->stats().num_graphs, 1);
  }
  check_nothing_leaked();
}

TEST(sizes_share_graphs_within_a_range_of_the_plan) {
  ToyEngine host, gpu(for_gpu);
  auto reference = Engine::load(host.path(), llmc_engine_options_default());
  auto engine = Engine::load(gpu.path(), options());
  int64_t steps = 0;
  // The plan's ranges end at 3 and 32 tokens; the batch is at most 8.
  for (auto [count, graphs] : {std::pair(1, 1),
                               {2, 2},
                               {3, 3},
                               {2, 3},
                               {4, 4},
                               {5, 5},
                               {6, 5},
                               {8, 5},
                               {7, 5},
                               {1, 5}}) {
    CHECK(step_of(*engine, count) == step_of(*reference, count));
    CHECK_EQ(engine->stats().num_graphs, graphs);
    CHECK_EQ(engine->stats().graph_launches, ++steps);
  }
}

TEST(mixed_batches_give_the_same_tokens_with_and_without_graphs) {
  for (bool on_device : {false, true}) {
    ToyEngine toy(on_device ? sampling : for_gpu);
    auto run = [&](const llmc_engine_options &chosen) {
      auto engine = Engine::load(toy.path(), chosen);
      std::vector<std::shared_ptr<RequestStream>> streams;
      for (int i = 0; i < 20; ++i)
        streams.push_back(engine->submit(Tokens(size_t(1 + i * 3), i),
                                         greedy(5 + i), nullptr, nullptr));
      std::vector<Tokens> all;
      for (auto &stream : streams)
        all.push_back(read_all(*stream));
      CHECK_EQ(engine->stats().graph_launches > 0, chosen.cuda_graphs != 0);
      CHECK_EQ(engine->stats().num_graphs > 0, chosen.cuda_graphs != 0);
      return all;
    };
    CHECK(run(options()) == run(eager()));
  }
}

TEST(padding_is_sequences_of_one_token_in_block_0) {
  ToyEngine toy(for_gpu);
  auto engine = Engine::load(toy.path(), options());
  step_of(*engine, 8); // leaves other values where the padding goes
  step_of(*engine, 5);
  using Ints = std::vector<int32_t>;
  CHECK(uploaded<int32_t>(StepInput::Tokens, 8) ==
        (Ints{3, 1, 4, 15, 9, 0, 0, 0}));
  CHECK(uploaded<int32_t>(StepInput::Positions, 8) == Ints(8, 0));
  CHECK(uploaded<int32_t>(StepInput::QueryStart, 9) ==
        (Ints{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  CHECK(uploaded<int32_t>(StepInput::LogitRows, 8) ==
        (Ints{0, 1, 2, 3, 4, 5, 6, 7}));
  CHECK(uploaded<int32_t>(StepInput::KvLen, 8) == Ints(8, 1));
  CHECK(uploaded<int32_t>(StepInput::Slots, 3, 5) == Ints(3, 0));
  CHECK(uploaded<int32_t>(StepInput::BlockTable, 3 * 32, 5 * 32) ==
        Ints(3 * 32, 0));
  for (int32_t slot : uploaded<int32_t>(StepInput::Slots, 5))
    CHECK(slot >= 4); // real ones stay out of block 0
  CHECK(uploaded<float>(StepInput::Temperature, 8) == Logits(8, 0));
  CHECK(uploaded<float>(StepInput::TopP, 3, 5) == Logits(3, 1));
  StepInputs inputs({.T = 32, .S = 8, .R = 8, .NB = 0, .B = 32});
  CHECK_EQ(cuda().uploaded_bytes, inputs.used_bytes(8));
}

TEST(launch_attributes_survive_recording) {
  ToyEngine toy([](json &manifest, json &plan) {
    for_gpu(manifest, plan);
    plan["kernels"][2]["pdl"] = true;
  });
  auto engine = Engine::load(toy.path(), options());
  int before = cuda().pdl_launches;
  step_of(*engine, 1), step_of(*engine, 1);
  CHECK_EQ(engine->stats().graph_launches, 2);
  CHECK_EQ(cuda().pdl_launches - before, 2);
}

TEST(only_token_ids_come_back_unless_logprobs_are_asked) {
  ToyEngine toy(sampling);
  for (const llmc_engine_options &chosen : {options(), eager()}) {
    auto engine = Engine::load(toy.path(), chosen);
    int64_t before = cuda().downloaded_bytes;
    Tokens tokens = generate(*engine, {1, 2}, greedy(10));
    CHECK_EQ(cuda().downloaded_bytes - before, 10 * 4);
    before = cuda().downloaded_bytes;
    SamplingParams params = greedy(10);
    params.logprobs = 0;
    CHECK(generate(*engine, {1, 2}, params) == tokens);
    CHECK_EQ(cuda().downloaded_bytes - before, 10 * (4 + 64 * 4));
  }
}

TEST(they_can_be_switched_off) {
  ToyEngine toy(for_gpu);
  auto engine = Engine::load(toy.path(), eager());
  int64_t captures = cuda().captures;
  generate(*engine, {1, 2}, greedy(10));
  CHECK_EQ(engine->stats().num_graphs, 0);
  CHECK_EQ(engine->stats().graph_launches, 0);
  CHECK_EQ(cuda().captures, captures);
}

TEST(a_driver_that_refuses_to_record_costs_speed_only) {
  ToyEngine toy(for_gpu);
  Tokens expected =
      generate(*Engine::load(toy.path(), eager()), {1, 2}, greedy(10));
  for (const char *function :
       {"cuStreamBeginCapture_v2", "cuLaunchKernelEx", "cuStreamEndCapture",
        "cuGraphInstantiateWithFlags"}) {
    auto engine = Engine::load(toy.path(), options());
    step_of(*engine, 2); // stays in use
    {
      // The prompt's step launches twice before the first recording.
      Failure failure(function, 801, function[2] == 'L' ? 3 : 0);
      CHECK(generate(*engine, {1, 2}, greedy(10)) == expected);
      CHECK(!cuda().fail_function);
    }
    CHECK_EQ(engine->stats().num_graphs, 1);
    CHECK_EQ(engine->stats().graph_launches, 1);
    step_of(*engine, 2);
    CHECK_EQ(engine->stats().graph_launches, 2);
  }
  check_nothing_leaked();
}

TEST(an_error_of_a_replay_fails_the_requests_of_its_step_only) {
  ToyEngine toy(for_gpu);
  llmc_engine_options one = options();
  one.max_batch_size = 1; // the second request waits
  Tokens expected =
      generate(*Engine::load(toy.path(), eager()), {4, 5}, greedy(10));
  auto engine = Engine::load(toy.path(), one);
  Failure failure("cuGraphLaunch", 1, 3);
  auto first = engine->submit(Tokens{1, 2}, greedy(10), nullptr, nullptr);
  auto second = engine->submit(Tokens{4, 5}, greedy(10), nullptr, nullptr);
  CHECK(has(THROWN(Error, read_all(*first)),
            "cannot launch the graph of a step of 1 tokens"));
  CHECK(read_all(*second) == expected);
  CHECK_EQ(engine->stats().blocks_used, 0);
}

TEST(an_error_inside_a_replay_says_that_a_graph_ran) {
  ToyEngine toy(for_gpu);
  auto engine = Engine::load(toy.path(), options());
  Failure failure("cuEventQuery", 700, 12);
  auto stream = engine->submit(Tokens{1, 2}, greedy(30), nullptr, nullptr);
  std::string message;
  try {
    read_all(*stream);
  } catch (const Error &error) {
    message = error.what();
  }
  CHECK(has(message, "CUDA_ERROR_ILLEGAL_ADDRESS") &&
        has(message, "it ran as a CUDA graph"));
  CHECK_EQ(engine->stats().blocks_used, 0);
}

TEST_MAIN()
