// llmc/monitoring.h.

#include "c_guard.h"
#include "llmc/monitoring.h"

#include <array>

namespace {

constexpr int kBuckets = llmc::Histogram::kBuckets;
static_assert(kBuckets <= LLMC_MAX_HISTOGRAM_BUCKETS);

constexpr std::array<const char *, LLMC_NUM_METRICS> kNames = {
    "queue_seconds", "time_to_first_token_seconds", "inter_token_seconds",
    "step_seconds", "host_step_seconds"};

const double *bounds() {
  static const auto all = [] {
    std::array<double, kBuckets> result;
    for (int i = 0; i < kBuckets; ++i)
      result[static_cast<size_t>(i)] = llmc::Histogram::upper_bound(i);
    return result;
  }();
  return all.data();
}

} // namespace

extern "C" llmc_status llmc_engine_get_histogram(const llmc_engine *engine,
                                                 llmc_metric metric,
                                                 llmc_histogram *out) {
  return llmc::guarded([&] {
    llmc::require(engine && out,
                  "llmc_engine_get_histogram: engine and out must not be NULL");
    if (metric < 0 || metric >= LLMC_NUM_METRICS)
      llmc::fail(LLMC_INVALID_ARGUMENT, "metric must be in [0, ",
                 int{LLMC_NUM_METRICS}, "), found ", static_cast<int>(metric));
    const llmc::Histogram &found = engine->engine->histogram(metric);
    *out = {};
    out->name = kNames[static_cast<size_t>(metric)];
    out->num_buckets = kBuckets;
    out->bounds = bounds();
    for (int i = 0; i < kBuckets; ++i)
      out->counts[i] = found.count(i);
    out->sum = found.sum();
  });
}

extern "C" llmc_status llmc_engine_check_health(const llmc_engine *engine) {
  return llmc::guarded([&] {
    llmc::require(engine, "llmc_engine_check_health: engine must not be NULL");
    engine->engine->check_health();
  });
}
