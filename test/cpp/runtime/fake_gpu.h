#pragma once
// The toy engine on the stand-in for libcuda.

#include "check.h"
#include "engine.h"
#include "error.h"
#include "fake_cuda.h"
#include "toy_engine.h"

#include <cstdio>
#include <dlfcn.h>

namespace llmc::test {

using Tokens = std::vector<int32_t>;

inline FakeCudaState &cuda() {
  static auto function = [] {
    void *library = dlopen(LLMC_FAKE_CUDA, RTLD_NOW);
    return reinterpret_cast<FakeCudaStateFunction>(
        dlsym(library, "fake_cuda_state"));
  }();
  return *function();
}

inline llmc_engine_options options() {
  llmc_engine_options options = llmc_engine_options_default();
  options.cuda_library = LLMC_FAKE_CUDA;
  return options;
}

// The toy engine as if it were for a GPU: its host code stands for the cubin.
inline void for_gpu(nlohmann::json &manifest, nlohmann::json &plan) {
  manifest["target"] = {{"name", "sm_90"},
                        {"arch", "sm_90a"},
                        {"features", nlohmann::json::array()}};
  plan["code"][0]["kind"] = "cubin";
}

// An engine that samples on the device.
inline void sampling(nlohmann::json &manifest, nlohmann::json &plan) {
  for_gpu(manifest, plan);
  plan["arena"]["buffers"].push_back({{"name", "next_tokens"},
                                      {"dtype", "i32"},
                                      {"shape", {"R"}},
                                      {"offset", 256},
                                      {"bytes", 32},
                                      {"live", {1, 1}}});
  plan["outputs"]["next_tokens"] = 2;
  nlohmann::json kernel = plan["kernels"][2];
  kernel["name"] = "sample", kernel["entry"] = "toy_sample";
  plan["kernels"].push_back(kernel);
  for (nlohmann::json &range : plan["ranges"])
    range["launches"].push_back({{"kernel", 3},
                                 {"grid", {"R", 1, 1}},
                                 {"args", {{{"buffer", 1}}, {{"buffer", 2}}}}});
}

struct Failure { // on demand, and what the next calls do not see any more
  Failure(const char *function, int result, int after = 0) {
    cuda().fail_result = result;
    cuda().fail_after = after;
    cuda().fail_function = function;
  }
  ~Failure() { cuda().fail_function = nullptr; }
};

inline SamplingParams greedy(int max_tokens) {
  SamplingParams params;
  params.temperature = 0;
  params.max_tokens = max_tokens;
  params.ignore_eos = true;
  return params;
}

inline Tokens read_all(RequestStream &stream) {
  Tokens tokens;
  llmc_finish finish = LLMC_RUNNING;
  while (finish == LLMC_RUNNING) {
    llmc_token out[8];
    size_t n = stream.next(out, 8, 30, finish);
    for (size_t i = 0; i < n; ++i)
      tokens.push_back(out[i].id);
  }
  return tokens;
}

inline bool has(const std::string &message, const char *text) {
  bool found = message.find(text) != std::string::npos;
  if (!found)
    std::printf("  no \"%s\" in: %s\n", text, message.c_str());
  return found;
}

inline void check_nothing_leaked() {
  CHECK_EQ(cuda().live_allocations, 0);
  CHECK_EQ(cuda().live_pinned, 0);
  CHECK_EQ(cuda().live_modules, 0);
  CHECK_EQ(cuda().live_events, 0);
  CHECK_EQ(cuda().live_graphs, 0);
  CHECK_EQ(cuda().live_contexts, 0);
}

} // namespace llmc::test
