#pragma once
// The C API for tests: failures become exceptions.

#include "llmc/llmc.h"

#include <stdexcept>
#include <string>
#include <vector>

namespace llmc::test {

using Tokens = std::vector<int32_t>;

class Engine {
public:
  explicit Engine(const std::string &path,
                  llmc_engine_options options = llmc_engine_options_default()) {
    options.num_threads = options.num_threads ? options.num_threads : 2;
    if (llmc_engine_load(path.c_str(), &options, &engine_))
      throw std::runtime_error(llmc_last_error());
  }
  ~Engine() { llmc_engine_free(engine_); }
  operator llmc_engine *() const { return engine_; }
  llmc_engine_stats stats() const {
    llmc_engine_stats stats;
    llmc_engine_get_stats(engine_, &stats);
    return stats;
  }

private:
  llmc_engine *engine_ = nullptr;
};

inline llmc_sampling_params greedy(int max_tokens) {
  llmc_sampling_params params = llmc_sampling_params_default();
  params.temperature = 0;
  params.max_tokens = max_tokens;
  return params;
}

inline llmc_request *submit(llmc_engine *engine, const Tokens &prompt,
                            const llmc_sampling_params &params) {
  llmc_request *request = nullptr;
  if (llmc_engine_submit(engine, prompt.data(), prompt.size(), &params, nullptr,
                         nullptr, &request))
    throw std::runtime_error(llmc_last_error());
  return request;
}

// Reads a request to its end and frees it.
inline Tokens finish(llmc_request *request, llmc_finish *reason = nullptr) {
  Tokens tokens;
  llmc_finish end = LLMC_RUNNING;
  while (end == LLMC_RUNNING) {
    llmc_token out[3]; // small on purpose
    size_t n = 0;
    if (llmc_request_next(request, out, 3, 30, &n, &end))
      throw std::runtime_error(llmc_last_error());
    for (size_t i = 0; i < n; ++i)
      tokens.push_back(out[i].id);
  }
  if (reason)
    *reason = end;
  llmc_request_free(request);
  return tokens;
}

} // namespace llmc::test
