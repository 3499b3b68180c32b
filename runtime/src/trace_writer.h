#pragma once
// A trace of steps in Chrome's trace event format (a JSON array), for
// chrome://tracing and ui.perfetto.dev.

#include "llmc/llmc.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace llmc {

class TraceWriter {
public:
  using Clock = std::chrono::steady_clock;
  enum class Track { Host = 1, Device = 2 };
  struct StepArgs {
    int64_t step;
    int tokens, sequences, rows; // T, S, R
  };

  // Replaces the file. Throws LLMC_INVALID_ARGUMENT when that is not possible.
  explicit TraceWriter(const std::string &path);
  ~TraceWriter();
  TraceWriter(const TraceWriter &) = delete;

  void span(Track track, const char *name, Clock::time_point begin,
            Clock::time_point end, const StepArgs &args);
  void counters(Clock::time_point when, const llmc_engine_stats &stats);

private:
  double microseconds(Clock::time_point when) const {
    return std::chrono::duration<double, std::micro>(when - start_).count();
  }
  void check(int written); // a full disk ends the trace, not the engine
  void name_track(Track track, const char *name);

  const std::string path_;
  std::FILE *file_;
  const Clock::time_point start_ = Clock::now();
};

} // namespace llmc
