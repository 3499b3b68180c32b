#pragma once
// Holds everything of an engine that lies on the device, and computes a batch
// on it.

#include "backend.h"
#include "batch.h"
#include "input_writer.h"
#include "kv_cache_manager.h"
#include "plan_executor.h"
#include "safetensors.h"
#include "step_inputs.h"
#include "step_runner.h"

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace llmc {

struct KvCacheOptions {
  int64_t tokens = 0;              // 0: by bytes
  int64_t bytes = 0;               // 0: by fraction
  double free_memory_fraction = 0; // 0: the target's default
  int64_t host_bytes = 0;          // for preempted sequences; 0: none
};

class ModelRunner final : public StepRunner {
public:
  // Uploads the weights, takes arena, step inputs and KV pool, binds the plan.
  ModelRunner(std::unique_ptr<Backend> backend, const Manifest &manifest,
              Plan plan, const std::map<std::string, TensorView> &weights,
              const KvCacheOptions &kv_cache);

  void run(const Batch &batch, const KvCacheManager &kv_cache) override;

  // Times a step of `sequences` sequences, each with `tokens` new tokens behind
  // context - tokens cached ones. Overwrites the KV pool: only while nothing
  // uses it. Throws LLMC_INVALID_ARGUMENT with the limits.
  StepProfile profile(int sequences, int tokens, int context, int repeats);
  double copy_bandwidth() { return backend_->copy_bandwidth(); }

  // Copied from the device when first asked for: with next_tokens a step moves
  // a few bytes, and its logits only when somebody wants them.
  std::span<const float> logits(int row) override;
  std::span<const int32_t> next_tokens(int slot) override;
  void wait(int slot) override { backend_->finish_fetch(slot); }
  bool samples_on_device() const override {
    return plan_.next_tokens.has_value();
  }

  bool overlaps() const override {
    return samples_on_device() && backend_->is_asynchronous();
  }

  void measure_device_times() override { backend_->measure_device_times(); }
  std::optional<DeviceTimes> device_times(int slot) override {
    return backend_->device_times(slot);
  }
  std::string why_lost() const override { return backend_->why_lost(); }
  GraphStats graph_stats() const override { return backend_->graph_stats(); }
  ThreadPool &thread_pool() override { return backend_->thread_pool(); }
  const Plan &plan() const { return plan_; }
  int num_blocks() const { return num_blocks_; } // block 0 included
  int num_host_blocks() const { return num_host_blocks_; }
  size_t weight_bytes() const { return weight_bytes_; }
  size_t kv_cache_bytes() const {
    return plan_.kv_bytes_per_block() * static_cast<size_t>(num_blocks_);
  }

private:
  void allocate_host_blocks(const KvCacheOptions &options);
  void copy_blocks(std::span<const BlockCopy> copies);
  void copy_pending_tokens(const Batch &batch);
  void poison_new_blocks(const Batch &batch, const KvCacheManager &kv_cache);
  void upload_weights(const Manifest &manifest,
                      const std::map<std::string, TensorView> &weights);
  void allocate_kv_cache(const Limits &limits, const KvCacheOptions &options);

  std::unique_ptr<Backend> backend_;
  Plan plan_;
  int vocab_size_;
  Limits limits_;
  StepInputs inputs_;
  std::optional<InputWriter> input_writer_;
  PlanMemory memory_;
  int num_blocks_ = 0, num_host_blocks_ = 0;
  uint64_t host_blocks_ = 0; // each holds K and V of layer 0, of layer 1, ...
  size_t weight_bytes_ = 0;
  std::unique_ptr<PlanExecutor> executor_;
  int num_rows_ = 0;              // of the last run
  const float *logits_ = nullptr; // fetched once per run
  int num_tokens_[2] = {};        // fetched to each slot
  std::vector<DeviceCopy> copies_;
};

// Blocks of the pool, block 0 included. Throws LLMC_OUT_OF_MEMORY with the
// arithmetic when not even one sequence block fits.
int size_kv_cache(const Limits &limits, size_t bytes_per_block,
                  const KvCacheOptions &options, size_t free_bytes,
                  double default_fraction);

} // namespace llmc
