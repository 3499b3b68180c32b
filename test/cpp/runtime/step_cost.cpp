// How much time the host takes for a step beside the model: schedule, write the
// inputs, append, statistics, emit. Not a test: test/bench/step_cost.py runs
// it. `runtime_step_cost [steps]` writes a JSON object for each batch size.
#include "executor.h"
#include "input_writer.h"
#include "null_runner.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace llmc;
using namespace llmc::test;

namespace {

using Clock = std::chrono::steady_clock;

// What this thread has computed: on busy cores it stands still meanwhile.
double thread_microseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 +
         static_cast<double>(now.tv_nsec) * 1e-3;
}

// Sequences may have 8,192 tokens.
constexpr int kPrompt = 128, kBlock = 16, kMaxBlocksPerSeq = 512;

// Notes the time from the end of one step of full size to the moment when the
// next one could be launched.
class TimedRunner : public NullRunner {
public:
  TimedRunner(int num_blocks, int block_size, int batch, size_t steps)
      : NullRunner(num_blocks, block_size, {.verify = false}), batch_(batch),
        inputs_({.T = batch,
                 .S = batch,
                 .R = batch,
                 .NB = 0,
                 .B = kMaxBlocksPerSeq}),
        staging_(inputs_.bytes()), writer_(inputs_, staging_.data()) {
    wall.reserve(steps * 2);
    cpu.reserve(steps * 2);
  }
  void run(const Batch &batch, const KvCacheManager &kv_cache) override {
    bool is_full = batch.size() == batch_ && batch.num_tokens == batch_;
    if (is_full) {
      writer_.write(batch, kv_cache);
      if (was_full_) {
        wall.push_back(
            std::chrono::duration<double, std::micro>(Clock::now() - end_)
                .count());
        cpu.push_back(thread_microseconds() - cpu_end_);
      }
    }
    was_full_ = is_full;
    NullRunner::run(batch, kv_cache);
    cpu_end_ = thread_microseconds();
    end_ = Clock::now();
  }
  std::vector<double> wall, cpu; // microseconds of each step

private:
  const int batch_;
  const StepInputs inputs_;
  std::vector<std::byte> staging_;
  InputWriter writer_;
  bool was_full_ = false;
  Clock::time_point end_{};
  double cpu_end_ = 0;
};

void measure(int batch, int steps) {
  int blocks = batch * ((kPrompt + steps) / kBlock + 2) + 1;
  TimedRunner runner(blocks, kBlock, batch, static_cast<size_t>(steps));
  KvCacheManager kv_cache(blocks, kBlock);
  ModelInfo model;
  std::atomic<int> ended{0};
  {
    Executor executor(
        runner, kv_cache,
        {.max_batch_size = batch, .max_num_tokens = std::max(batch, 8192)},
        model);
    auto callback = [](void *user, const llmc_token *, size_t,
                       llmc_finish finish) {
      if (finish != LLMC_RUNNING)
        ++*static_cast<std::atomic<int> *>(user);
    };
    for (int i = 0; i < batch; ++i) {
      auto request = std::make_shared<Request>();
      // As the engine does, so that no step allocates.
      request->sequence.tokens.reserve(static_cast<size_t>(kPrompt + steps));
      request->sequence.blocks.reserve(
          static_cast<size_t>((kPrompt + steps) / kBlock + 1));
      request->sequence.tokens.assign(kPrompt, i);
      request->sequence.num_prompt_tokens = kPrompt;
      request->params.ignore_eos = true;
      request->max_total_tokens = kPrompt + steps;
      request->stream = std::make_shared<RequestStream>(callback, &ended,
                                                        executor.attention());
      executor.submit(std::move(request));
    }
    while (ended < batch)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (runner.wall.empty()) {
    std::fprintf(stderr,
                 "%d sequences: no step had all of them, ask for more steps\n",
                 batch);
    std::exit(1);
  }
  auto percentile = [](std::vector<double> &all, double p) {
    std::sort(all.begin(), all.end());
    return all[static_cast<size_t>(p * static_cast<double>(all.size() - 1))];
  };
  std::printf("{\"sequences\": %d, \"steps\": %zu, \"wall_us\": {\"p50\": "
              "%.1f, \"p99\": %.1f}, \"cpu_us\": {\"p50\": %.1f, \"p99\": "
              "%.1f}}\n",
              batch, runner.wall.size(), percentile(runner.wall, 0.5),
              percentile(runner.wall, 0.99), percentile(runner.cpu, 0.5),
              percentile(runner.cpu, 0.99));
}

} // namespace

int main(int argc, char **argv) {
  int steps = argc > 1 ? std::atoi(argv[1]) : 1000;
  if (steps < 2) {
    std::fprintf(stderr, "usage: runtime_step_cost [steps >= 2]\n");
    return 2;
  }
  for (int batch : {1, 64, 256, 2048})
    measure(batch, steps);
}
