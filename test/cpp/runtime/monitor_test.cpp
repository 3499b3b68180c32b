// Histograms and the trace of steps.
#include "fake_gpu.h"
#include "histogram.h"
#include "llmc/monitoring.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

using namespace llmc;
using namespace llmc::test;
using nlohmann::json;

namespace {

uint64_t count(const Histogram &histogram) {
  uint64_t sum = 0;
  for (int i = 0; i < Histogram::kBuckets; ++i)
    sum += histogram.count(i);
  return sum;
}

struct TraceFile {
  std::string path = (std::filesystem::temp_directory_path() /
                      ("llmc-trace-" + std::to_string(getpid()) + ".json"))
                         .string();
  ~TraceFile() { std::filesystem::remove(path); }
};

} // namespace

TEST(a_duration_falls_below_the_bound_of_its_bucket) {
  double below = 0;
  for (int i = 0; i < Histogram::kBuckets; ++i) {
    double bound = Histogram::upper_bound(i);
    CHECK(bound > below);
    if (i > 0)
      CHECK(bound / below <= 1.25);
    CHECK_EQ(Histogram::bucket(std::nextafter(bound, 0)), i);
    CHECK_EQ(Histogram::bucket(std::max(below, 0x1p-20)), i);
    below = bound;
  }
  CHECK_EQ(below, 512);
  for (double small : {-1.0, 0.0, 1e-9})
    CHECK_EQ(Histogram::bucket(small), 0);
  for (double large : {512.0, 1e9, HUGE_VAL})
    CHECK_EQ(Histogram::bucket(large), Histogram::kBuckets - 1);
}

TEST(every_request_token_and_step_is_counted_once) {
  ToyEngine gpu(sampling);
  for (bool overlap : {false, true}) {
    llmc_engine_options chosen = options();
    chosen.overlap = overlap;
    auto engine = Engine::load(gpu.path(), chosen);
    std::vector<std::shared_ptr<RequestStream>> streams;
    for (int i = 0; i < 12; ++i)
      streams.push_back(
          engine->submit(Tokens{1, i}, greedy(1 + i), nullptr, nullptr));
    for (auto &stream : streams)
      read_all(*stream);
    engine->score({}, 0, nullptr); // the executor is through with the last step
    auto seen = [&](llmc_metric metric) {
      return count(engine->histogram(metric));
    };
    CHECK_EQ(seen(LLMC_METRIC_QUEUE), 12);
    CHECK_EQ(seen(LLMC_METRIC_FIRST_TOKEN), 12);
    CHECK_EQ(seen(LLMC_METRIC_INTER_TOKEN), 12 * 13 / 2 - 12);
    CHECK_EQ(seen(LLMC_METRIC_STEP), engine->stats().num_steps);
    CHECK_EQ(seen(LLMC_METRIC_HOST), engine->stats().num_steps);
    CHECK(engine->histogram(LLMC_METRIC_FIRST_TOKEN).sum() > 0);
    CHECK(engine->stats().host_seconds > 0);
  }
}

// The stand-in's clock: a millisecond from each event to the next.
TEST(a_trace_has_each_step_with_the_times_of_the_device) {
  ToyEngine gpu(sampling);
  for (bool overlap : {false, true}) {
    TraceFile file;
    int64_t steps = 0;
    {
      llmc_engine_options chosen = options();
      chosen.overlap = overlap;
      chosen.trace_file = file.path.c_str();
      auto engine = Engine::load(gpu.path(), chosen);
      auto first =
          engine->submit(Tokens{1, 2, 3}, greedy(20), nullptr, nullptr);
      auto second = engine->submit(Tokens(70, 5), greedy(9), nullptr, nullptr);
      read_all(*first), read_all(*second);
      engine->score({}, 0, nullptr);
      steps = engine->stats().num_steps;
    }
    json events = json::parse(read_file(file.path));
    std::map<std::string, std::vector<json>> spans;
    for (const json &event : events)
      if (event["ph"] == "X")
        spans[event["name"]].push_back(event);
    int tokens = 0, rows = 0;
    double end = -1;
    for (const char *name :
         {"schedule", "launch", "wait", "emit", "inputs", "kernels"}) {
      CHECK_EQ(spans[name].size(), steps);
      int64_t number = 0;
      for (const json &span : spans[name]) {
        CHECK_EQ(span["args"]["step"], ++number);
        CHECK(span["dur"] >= 0);
      }
    }
    for (size_t i = 0; i < spans["kernels"].size(); ++i) {
      const json &inputs = spans["inputs"][i], &kernels = spans["kernels"][i];
      tokens += kernels["args"]["T"].get<int>();
      rows += kernels["args"]["R"].get<int>();
      CHECK_NEAR(inputs["dur"], 1000, 0.01);
      CHECK_NEAR(kernels["ts"], inputs["ts"].get<double>() + 1000, 0.01);
      if (end >= 0)
        CHECK_NEAR(inputs["ts"], end + 1000, 0.01);
      end = kernels["ts"].get<double>() + 1000;
    }
    CHECK_EQ(tokens, 3 + 19 + 70 + 8);
    CHECK_EQ(rows, 29);
  }
  check_nothing_leaked();
}

TEST(a_trace_that_cannot_be_written_is_refused_at_load) {
  ToyEngine gpu(sampling);
  llmc_engine_options chosen = options();
  chosen.trace_file = "/nonexistent/trace.json";
  CHECK(has(THROWN(Error, Engine::load(gpu.path(), chosen)),
            "cannot write the trace to /nonexistent/trace.json: No such file"));
  check_nothing_leaked();
}

// /dev/full takes what fits the buffer and no more.
TEST(a_full_disk_ends_the_trace_and_not_the_engine) {
  if (!std::filesystem::exists("/dev/full"))
    return;
  ToyEngine host;
  llmc_engine_options chosen = llmc_engine_options_default();
  chosen.trace_file = "/dev/full";
  auto engine = Engine::load(host.path(), chosen);
  for (int i = 0; i < 60; ++i) // more than a buffer of a megabyte
    CHECK_EQ(
        read_all(*engine->submit(Tokens{1, i}, greedy(60), nullptr, nullptr))
            .size(),
        60);
}

TEST_MAIN()
