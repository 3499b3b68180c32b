// The CUDA backend on a stand-in for libcuda: the toy engine end to end, what
// reaches the driver, and every kind of driver error.
#include "fake_gpu.h"

using namespace llmc;
using namespace llmc::test;
using nlohmann::json;

namespace {

std::vector<Tokens> run(Engine &engine) {
  std::vector<std::shared_ptr<RequestStream>> streams;
  for (int i = 0; i < 20; ++i)
    streams.push_back(engine.submit(Tokens(static_cast<size_t>(1 + i * 5), i),
                                    greedy(20), nullptr, nullptr));
  std::vector<Tokens> all;
  for (auto &stream : streams)
    all.push_back(read_all(*stream));
  return all;
}

std::string load_failure(const ToyEngine &toy, const char *function, int result,
                         llmc_status status, int after = 0) {
  cuda().fail_function = function;
  cuda().fail_after = after;
  cuda().fail_result = result;
  std::string message;
  try {
    Engine::load(toy.path(), options());
  } catch (const Error &error) {
    CHECK_EQ(error.status(), status);
    message = error.what();
  }
  cuda().fail_function = nullptr;
  return message;
}

} // namespace

TEST(gives_the_tokens_of_the_host_backend) {
  ToyEngine host, gpu(for_gpu);
  std::vector<Tokens> expected =
      run(*Engine::load(host.path(), llmc_engine_options_default()));
  {
    auto engine = Engine::load(gpu.path(), options());
    CHECK(run(*engine) == expected);
    CHECK_EQ(engine->stats().blocks_used, 0);
    CHECK_EQ(engine->info().num_threads, 0);
  }
  check_nothing_leaked();
}

// Chunks before the last have no logit rows: nothing waits for such a step, and
// the next one must not overwrite its inputs while they are still to be copied.
TEST(steps_without_output_keep_their_inputs) {
  ToyEngine host, gpu(for_gpu);
  Tokens prompt(110);
  for (size_t i = 0; i < prompt.size(); ++i)
    prompt[i] = static_cast<int32_t>(i * i % 64);
  auto alone = [&](Engine &engine) {
    return read_all(*engine.submit(prompt, greedy(5), nullptr, nullptr));
  };
  auto expected =
      alone(*Engine::load(host.path(), llmc_engine_options_default()));
  CHECK(alone(*Engine::load(gpu.path(), options())) == expected);
}

TEST(launch_attributes_reach_the_driver) {
  ToyEngine toy([](json &manifest, json &plan) {
    for_gpu(manifest, plan);
    plan["kernels"][2]["pdl"] = true;
    plan["kernels"][2]["cluster"] = {2, 1, 1};
    plan["kernels"][2]["shared_bytes"] = 100000;
  });
  cuda().pdl_launches = 0;
  auto engine = Engine::load(toy.path(), options());
  CHECK_EQ(cuda().shared_bytes, 100000);
  read_all(*engine->submit(Tokens{1, 2}, greedy(3), nullptr, nullptr));
  CHECK_EQ(cuda().pdl_launches, 3); // one logits launch for each token
  CHECK_EQ(cuda().cluster_x, 2);
}

TEST(tensor_maps_are_encoded_once_with_the_pool_size) {
  ToyEngine toy([](json &manifest, json &plan) {
    for_gpu(manifest, plan);
    plan["ranges"][0]["launches"][0]["args"].push_back(
        {{"tensor_map",
          {{"base", {{"kv", "k"}, {"layer", 0}}},
           {"dtype", "bf16"},
           {"shape", {64, {"mul", "NB", 8}}},
           {"strides", {128}},
           {"box", {64, 16}},
           {"swizzle", 128},
           {"l2_promotion", 128},
           {"fill", "zero"}}}});
  });
  llmc_engine_options small = options();
  small.kv_cache_tokens = 40;
  auto engine = Engine::load(toy.path(), small);
  const uint64_t *map = cuda().tensor_map;
  CHECK_EQ(map[1], 64);
  CHECK_EQ(map[2], 11 * 8); // 10 blocks and block 0
  CHECK_EQ(map[3], 128);
  CHECK_EQ(map[4], 64);
  CHECK_EQ(map[5], 16);
  CHECK_EQ(map[6], 9); // CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
  CHECK_EQ(map[7], 3); // CU_TENSOR_MAP_SWIZZLE_128B
  CHECK_EQ(map[8], 2); // CU_TENSOR_MAP_L2_PROMOTION_L2_128B
}

TEST(another_gpu_is_refused_with_both_names) {
  ToyEngine toy(for_gpu);
  for (auto [major, minor] :
       {std::pair(8, 6), std::pair(9, 1), std::pair(10, 0)}) {
    cuda().major = major, cuda().minor = minor;
    std::string message = load_failure(toy, nullptr, 0, LLMC_UNSUPPORTED);
    CHECK(has(message, "sm_90a (compute capability 9.0)") &&
          has(message, "Pretend GPU with ") &&
          has(message, "llmc compile --target sm_"));
  }
  cuda().major = 9, cuda().minor = 0;
}

TEST(errors_while_loading_are_named_and_leak_nothing) {
  ToyEngine toy(for_gpu);
  CHECK(has(load_failure(toy, "cuInit", 100, LLMC_DEVICE_ERROR),
            "cannot start the CUDA driver"));
  CHECK(has(load_failure(toy, "cuMemAlloc_v2", 2, LLMC_OUT_OF_MEMORY),
            "bytes of GPU memory for the weights: CUDA_ERROR_OUT_OF_MEMORY"));
  CHECK(has(load_failure(toy, "cuMemAlloc_v2", 2, LLMC_OUT_OF_MEMORY, 1),
            "activation arena"));
  CHECK(has(load_failure(toy, "cuMemAlloc_v2", 2, LLMC_OUT_OF_MEMORY, 3),
            "KV pool"));
  CHECK(has(load_failure(toy, "cuMemHostAlloc", 2, LLMC_OUT_OF_MEMORY), "pin"));
  CHECK(has(load_failure(toy, "cuModuleLoadData", 200, LLMC_DEVICE_ERROR),
            "cannot load kernels/host.so"));
  CHECK(has(load_failure(toy, "cuModuleGetFunction", 500, LLMC_BAD_ENGINE),
            "kernel append"));
  check_nothing_leaked();
}

TEST(a_failed_launch_names_the_kernel_and_fails_its_request_only) {
  ToyEngine toy(for_gpu);
  auto engine = Engine::load(toy.path(), options());
  cuda().fail_function = "cuLaunchKernelEx";
  cuda().fail_after = 1;
  cuda().fail_result = 1;
  auto stream =
      engine->submit(Tokens{1, 2, 3, 4, 5}, greedy(3), nullptr, nullptr);
  std::string message = THROWN(Error, read_all(*stream));
  CHECK(has(message, "cannot launch kernel logits (grid 1x1x1"));
  CHECK_EQ(engine->stats().blocks_used, 0);
  CHECK_EQ(read_all(*engine->submit(Tokens{1, 2}, greedy(3), nullptr, nullptr))
               .size(),
           3);
}

TEST(a_failed_step_fails_its_requests_and_the_engine_still_closes) {
  ToyEngine toy(for_gpu);
  {
    llmc_engine_options eager = options();
    eager.cuda_graphs = 0; // a graph has no last kernel to name
    auto engine = Engine::load(toy.path(), eager);
    cuda().fail_function = "cuEventQuery";
    cuda().fail_after = 4;
    cuda().fail_result = 700;
    auto stream = engine->submit(Tokens{1, 2}, greedy(30), nullptr, nullptr);
    CHECK(has(THROWN(Error, read_all(*stream)), "CUDA_ERROR_ILLEGAL_ADDRESS"));
    CHECK(has(THROWN(Error, read_all(*stream)),
              "its last kernel was logits")); // and again
    CHECK_EQ(engine->stats().blocks_used, 0);
  }
  check_nothing_leaked();
}

TEST_MAIN()
