#pragma once
// A loaded engine: what the C API hands out.

#include "engine_file.h"
#include "executor.h"
#include "model_runner.h"

#include <memory>
#include <string>

namespace llmc {

// Throws LLMC_INVALID_ARGUMENT with the range.
void check_priority(int priority);

struct Submission {
  SamplingParams params;
  ServingParams serving;
  llmc_token_callback callback = nullptr;
  void *user = nullptr;
};

class Engine {
public:
  static std::unique_ptr<Engine> load(const std::string &path,
                                      const llmc_engine_options &options);

  // Checks requests for one prompt against limits and pool (LLMC_REFUSED with
  // numbers), queues all of them and returns their streams. The first one
  // computes the prompt.
  std::vector<std::shared_ptr<RequestStream>>
  submit(std::span<const int32_t> prompt, std::vector<Submission> submissions);
  std::shared_ptr<RequestStream> submit(std::span<const int32_t> prompt,
                                        SamplingParams params,
                                        llmc_token_callback callback,
                                        void *user,
                                        const ServingParams &serving = {}) {
    return submit(prompt, {{std::move(params), serving, callback, user}})[0];
  }

  // Rows of `sequences` must be ascending positions; checked.
  void score(std::span<const ForwardSequence> sequences, int chunk_tokens,
             float *logits);

  llmc_engine_info info() const;
  llmc_engine_stats stats() const { return executor_->stats(); }
  void check_health() const { executor_->check_health(); }
  const Histogram &histogram(llmc_metric metric) const {
    return executor_->histogram(metric);
  }

private:
  Engine() = default;
  std::shared_ptr<Request> make_request(std::span<const int32_t> prompt,
                                        Submission submission) const;
  void form_beams(std::vector<std::shared_ptr<Request>> &requests) const;
  void check_tokens(std::span<const int32_t> tokens, const char *what) const;

  Manifest manifest_;
  SchedulerConfig config_;
  int max_waiting_ = 0; // 0: no limit
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<KvCacheManager> kv_cache_;
  std::unique_ptr<Executor> executor_; // last: stops before the rest goes
};

} // namespace llmc
