// llmc-run: generates from token ids with the C++ runtime alone.
//
//   llmc-run ENGINE --tokens 1,2,3 --max-tokens 32
//   llmc-run ENGINE --prompt-file prompts.txt     (one prompt of comma- or
//   space-separated ids a line)
//
// Prints token ids as they come: with one prompt on one line, with several as
// "<prompt index>: ids" when each ends. Exit codes: 0 all requests ended, 1 the
// engine or a request failed, 2 wrong usage.

#include "llmc/llmc.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr const char *kUsage =
    "usage: llmc-run ENGINE (--tokens IDS | --prompt-file FILE) [options]\n"
    "\n"
    "  --tokens IDS             prompt: token ids separated by commas\n"
    "  --prompt-file FILE       one prompt a line\n"
    "  --max-tokens N           tokens to generate for each prompt (default "
    "16)\n"
    "  --temperature X          0 is greedy (default 0)\n"
    "  --top-k N, --top-p X, --min-p X, --seed N\n"
    "  --stop-token-id N        may be repeated\n"
    "  --ignore-eos             generate past the model's end-of-sequence "
    "tokens\n"
    "  --threads N              host engines: threads (default: physical "
    "cores)\n"
    "  --device N               GPU engines: ordinal of the GPU\n"
    "  --kv-cache-tokens N      size of the KV pool in tokens\n"
    "  --stats                  print counters and speed to stderr at the end\n"
    "  --version, --help\n";

[[noreturn]] void usage_error(const std::string &message) {
  std::fprintf(stderr, "llmc-run: %s\n(llmc-run --help lists the options)\n",
               message.c_str());
  std::exit(2);
}

[[noreturn]] void runtime_error(const char *doing, llmc_status status) {
  std::fprintf(stderr, "llmc-run: %s (%s): %s\n", doing,
               llmc_status_name(status), llmc_last_error());
  std::exit(1);
}

long long parse_integer(const char *option, const std::string &text) {
  char *end = nullptr;
  errno = 0;
  long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || errno == ERANGE)
    usage_error(std::string(option) + ": expected an integer, found \"" + text +
                "\"");
  return value;
}

int32_t parse_int32(const char *option, const std::string &text) {
  long long value = parse_integer(option, text);
  if (value < INT32_MIN || value > INT32_MAX)
    usage_error(std::string(option) + ": " + text + " does not fit 32 bits");
  return static_cast<int32_t>(value);
}

uint64_t parse_seed(const std::string &text) {
  char *end = nullptr;
  errno = 0;
  unsigned long long value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || text[0] == '-' || *end != '\0' || errno == ERANGE)
    usage_error("--seed: expected an integer from 0 to 2^64 - 1, found \"" +
                text + "\"");
  return value;
}

float parse_float(const char *option, const std::string &text) {
  char *end = nullptr;
  float value = std::strtof(text.c_str(), &end);
  if (text.empty() || *end != '\0')
    usage_error(std::string(option) + ": expected a number, found \"" + text +
                "\"");
  return value;
}

std::vector<int32_t> parse_tokens(const char *option, const std::string &text) {
  std::vector<int32_t> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t begin = text.find_first_not_of(", \t\r", at);
    if (begin == std::string::npos)
      break;
    size_t end = text.find_first_of(", \t\r", begin);
    if (end == std::string::npos)
      end = text.size();
    tokens.push_back(parse_int32(option, text.substr(begin, end - begin)));
    at = end;
  }
  return tokens;
}

struct Arguments {
  std::string engine;
  std::vector<std::vector<int32_t>> prompts;
  std::vector<int32_t> stop_token_ids;
  llmc_sampling_params sampling = llmc_sampling_params_default();
  llmc_engine_options options = llmc_engine_options_default();
  bool stats = false;
};

void read_prompt_file(const std::string &path,
                      std::vector<std::vector<int32_t>> &prompts) {
  std::ifstream in(path);
  if (!in)
    usage_error("--prompt-file: cannot read " + path + ": " +
                std::strerror(errno));
  for (std::string line; std::getline(in, line);) {
    auto tokens = parse_tokens("--prompt-file", line);
    if (!tokens.empty())
      prompts.push_back(std::move(tokens));
  }
}

Arguments parse_arguments(int argc, char **argv) {
  Arguments args;
  args.sampling.temperature = 0;
  for (int i = 1; i < argc; ++i) {
    std::string option = argv[i], value;
    if (size_t equals = option.find('=');
        option.starts_with("--") && equals != std::string::npos) {
      value = option.substr(equals + 1);
      option.resize(equals);
    }
    auto next = [&]() -> std::string {
      if (!value.empty())
        return value;
      if (i + 1 >= argc)
        usage_error(option + " needs a value");
      return argv[++i];
    };
    const char *name = option.c_str();
    if (option == "--help" || option == "-h")
      std::fputs(kUsage, stdout), std::exit(0);
    else if (option == "--version")
      std::printf("llmc-run %s\n", llmc_version()), std::exit(0);
    else if (option == "--tokens")
      args.prompts.push_back(parse_tokens(name, next()));
    else if (option == "--prompt-file")
      read_prompt_file(next(), args.prompts);
    else if (option == "--max-tokens")
      args.sampling.max_tokens = parse_int32(name, next());
    else if (option == "--temperature")
      args.sampling.temperature = parse_float(name, next());
    else if (option == "--top-k")
      args.sampling.top_k = parse_int32(name, next());
    else if (option == "--top-p")
      args.sampling.top_p = parse_float(name, next());
    else if (option == "--min-p")
      args.sampling.min_p = parse_float(name, next());
    else if (option == "--seed")
      args.sampling.seed = parse_seed(next()), args.sampling.has_seed = 1;
    else if (option == "--stop-token-id")
      args.stop_token_ids.push_back(parse_int32(name, next()));
    else if (option == "--ignore-eos")
      args.sampling.ignore_eos = 1;
    else if (option == "--threads")
      args.options.num_threads = parse_int32(name, next());
    else if (option == "--device")
      args.options.device = parse_int32(name, next());
    else if (option == "--kv-cache-tokens")
      args.options.kv_cache_tokens = parse_integer(name, next());
    else if (option == "--stats")
      args.stats = true;
    else if (option.starts_with('-'))
      usage_error("unknown option " + option);
    else if (args.engine.empty())
      args.engine = option;
    else
      usage_error("one engine at a time, found also " + option);
  }
  if (args.engine.empty())
    usage_error("name an engine");
  if (args.prompts.empty())
    usage_error("give a prompt with --tokens or --prompt-file");
  return args;
}

// Reads a request to its end. `emit` sees each token. False when it failed.
bool read_all(llmc_request *request, const std::function<void(int32_t)> &emit) {
  llmc_token tokens[64];
  for (llmc_finish finish = LLMC_RUNNING; finish == LLMC_RUNNING;) {
    size_t n = 0;
    if (llmc_status status =
            llmc_request_next(request, tokens, 64, -1, &n, &finish)) {
      std::fprintf(stderr, "llmc-run: a request failed (%s): %s\n",
                   llmc_status_name(status), llmc_last_error());
      return false;
    }
    for (size_t i = 0; i < n; ++i)
      emit(tokens[i].id);
  }
  return true;
}

void print_stats(llmc_engine *engine) {
  llmc_engine_stats stats;
  llmc_engine_info info;
  if (llmc_engine_get_stats(engine, &stats) ||
      llmc_engine_get_info(engine, &info))
    return;
  std::fprintf(stderr,
               "%lld steps, %lld prompt tokens, %lld generated tokens, %.3f s "
               "in steps, %.3f s sampling\n"
               "KV blocks in use %lld of %lld, %d threads, weights %.1f MB, "
               "arena %.1f MB, KV pool %.1f MB\n",
               static_cast<long long>(stats.num_steps),
               static_cast<long long>(stats.num_prompt_tokens),
               static_cast<long long>(stats.num_generated_tokens),
               stats.step_seconds, stats.sample_seconds,
               static_cast<long long>(stats.blocks_used),
               static_cast<long long>(stats.blocks_total), info.num_threads,
               info.weight_bytes / 1e6, info.arena_bytes / 1e6,
               info.kv_cache_bytes / 1e6);
}

} // namespace

int main(int argc, char **argv) {
  Arguments args = parse_arguments(argc, argv);
  args.sampling.stop_token_ids = args.stop_token_ids.data();
  args.sampling.num_stop_token_ids = args.stop_token_ids.size();

  llmc_engine *engine = nullptr;
  if (llmc_status status =
          llmc_engine_load(args.engine.c_str(), &args.options, &engine))
    runtime_error("cannot load the engine", status);

  std::vector<llmc_request *> requests;
  bool ok = true;
  for (const auto &prompt : args.prompts) {
    llmc_request *request = nullptr;
    if (llmc_status status =
            llmc_engine_submit(engine, prompt.data(), prompt.size(),
                               &args.sampling, nullptr, nullptr, &request)) {
      std::fprintf(stderr, "llmc-run: prompt %zu (%s): %s\n", requests.size(),
                   llmc_status_name(status), llmc_last_error());
      ok = false;
    }
    requests.push_back(request);
  }
  const bool single = requests.size() == 1;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!requests[i])
      continue;
    std::string line;
    const char *separator = "";
    ok &= read_all(requests[i], [&](int32_t id) {
      if (single) {
        std::printf("%s%d", separator, id);
        std::fflush(stdout); // as they come
      } else {
        line += separator + std::to_string(id);
      }
      separator = " ";
    });
    if (single)
      std::printf("\n");
    else
      std::printf("%zu: %s\n", i, line.c_str());
    llmc_request_free(requests[i]);
  }
  if (args.stats)
    print_stats(engine);
  llmc_engine_free(engine);
  return ok ? 0 : 1;
}
