#include "trace_writer.h"

#include "error.h"

#include <cerrno>
#include <cinttypes>
#include <cstring>

namespace llmc {

namespace {

// Written when it is full: a step must not wait for the disk often.
constexpr size_t kBufferBytes = size_t{1} << 20;

} // namespace

TraceWriter::TraceWriter(const std::string &path)
    : path_(path), file_(std::fopen(path.c_str(), "we")) {
  if (!file_)
    fail(LLMC_INVALID_ARGUMENT, "cannot write the trace to ", path, ": ",
         std::strerror(errno));
  std::setvbuf(file_, nullptr, _IOFBF, kBufferBytes);
  check(std::fputs("[\n", file_));
  name_track(Track::Host, "executor thread");
  name_track(Track::Device, "device");
}

TraceWriter::~TraceWriter() {
  if (!file_)
    return;
  // The last event has a comma behind it.
  check(std::fprintf(file_,
                     "{\"name\":\"end\",\"ph\":\"i\",\"ts\":%.3f,"
                     "\"pid\":1,\"tid\":1,\"s\":\"g\"}\n]\n",
                     microseconds(Clock::now())));
  if (file_ && std::fclose(file_) != 0)
    std::fprintf(stderr, "llmc: the trace %s is incomplete: %s\n",
                 path_.c_str(), std::strerror(errno));
}

void TraceWriter::check(int written) {
  if (written >= 0)
    return;
  std::fprintf(stderr, "llmc: the trace %s ends here: %s\n", path_.c_str(),
               std::strerror(errno));
  std::fclose(file_);
  file_ = nullptr;
}

void TraceWriter::name_track(Track track, const char *name) {
  if (file_)
    check(std::fprintf(file_,
                       "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,"
                       "\"tid\":%d,\"args\":{\"name\":\"%s\"}},\n",
                       static_cast<int>(track), name));
}

void TraceWriter::span(Track track, const char *name, Clock::time_point begin,
                       Clock::time_point end, const StepArgs &args) {
  if (file_)
    check(std::fprintf(
        file_,
        "{\"name\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,"
        "\"pid\":1,\"tid\":%d,\"args\":{\"step\":%" PRId64
        ",\"T\":%d,\"S\":%d,\"R\":%d}},\n",
        name, microseconds(begin),
        std::chrono::duration<double, std::micro>(end - begin).count(),
        static_cast<int>(track), args.step, args.tokens, args.sequences,
        args.rows));
}

void TraceWriter::counters(Clock::time_point when,
                           const llmc_engine_stats &stats) {
  if (file_)
    check(std::fprintf(
        file_,
        "{\"name\":\"requests\",\"ph\":\"C\",\"ts\":%.3f,\"pid\":1,"
        "\"args\":{\"running\":%" PRId64 ",\"waiting\":%" PRId64 "}},\n"
        "{\"name\":\"KV blocks\",\"ph\":\"C\",\"ts\":%.3f,\"pid\":1,"
        "\"args\":{\"used\":%" PRId64 ",\"idle\":%" PRId64 "}},\n",
        microseconds(when), stats.num_running, stats.num_waiting,
        microseconds(when), stats.blocks_used, stats.blocks_idle));
}

} // namespace llmc
