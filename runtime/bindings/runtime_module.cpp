// llmc.runtime._runtime: the C API for Python. Nothing here runs Python code on
// the executor thread: tokens of any number of requests arrive in a Mailbox,
// and a Python thread waits for it with the GIL released.

#include "llmc/llmc.h"
#include "llmc/monitoring.h"
#include "load_options.h"
#include "sampling_options.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace {

struct ApiError {
  llmc_status status;
  std::string message;
};

void check(llmc_status status) {
  if (status != LLMC_OK)
    throw ApiError{status, llmc_last_error()};
}

// Becomes the exception class that llmc.runtime.errors has for the status.
void translate(const std::exception_ptr &pointer, void *) {
  try {
    std::rethrow_exception(pointer);
  } catch (const ApiError &error) {
    nb::object instance =
        nb::module_::import_("llmc.runtime.errors")
            .attr("make_error")(llmc_status_name(error.status), error.message);
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(instance.ptr())),
                    instance.ptr());
  }
}

struct Token {
  int32_t id;
  float logprob;
  std::vector<llmc_logprob> top;

  explicit Token(const llmc_token &token)
      : id(token.id), logprob(token.logprob),
        top(token.top_logprobs, token.top_logprobs + token.num_top_logprobs) {}
};

nb::dict as_dict(std::span<const llmc_logprob> logprobs) {
  nb::dict out;
  for (const llmc_logprob &one : logprobs)
    out[nb::int_(one.id)] = one.logprob;
  return out;
}

struct Event {
  int64_t key;
  std::vector<Token> tokens;
  llmc_finish finish;
};

class Mailbox {
public:
  void put(Event event) {
    {
      std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    ready_.notify_one();
  }

  std::vector<Event> take(double timeout_seconds) {
    std::unique_lock lock(mutex_);
    ready_.wait_for(lock, std::chrono::duration<double>(timeout_seconds),
                    [&] { return !events_.empty(); });
    return std::exchange(events_, {});
  }

private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<Event> events_;
};

// Lives from submit to the last callback of the request.
struct Subscription {
  std::shared_ptr<Mailbox> mailbox;
  int64_t key;
  CallbacksPtr callbacks;

  static void deliver(void *user, const llmc_token *tokens, size_t count,
                      llmc_finish finish) {
    auto *self = static_cast<Subscription *>(user);
    Event event{self->key, {}, finish};
    for (const llmc_token &token : std::span(tokens, count))
      event.tokens.emplace_back(token);
    self->mailbox->put(std::move(event));
    if (finish != LLMC_RUNNING)
      delete self;
  }
};

struct PyMailbox {
  std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>();
};

class Request {
public:
  explicit Request(llmc_request *request) : request_(request) {}
  ~Request() { llmc_request_free(request_); }
  Request(const Request &) = delete;

  void cancel() { llmc_request_cancel(request_); }

  int reused_tokens() const { return llmc_request_reused_tokens(request_); }
  void set_priority(int priority) {
    check(llmc_request_set_priority(request_, priority));
  }

  // (logprob, largest as {id: logprob}) of each token of the prompt.
  nb::list prompt_logprobs() const {
    const llmc_token *tokens;
    size_t count;
    check(llmc_request_prompt_logprobs(request_, &tokens, &count));
    nb::list out;
    for (const llmc_token &token : std::span(tokens, count))
      out.append(nb::make_tuple(
          token.logprob,
          as_dict({token.top_logprobs, token.num_top_logprobs})));
    return out;
  }

  // Raises the error of a request that ended with LLMC_FINISH_ERROR.
  void raise_error() {
    llmc_token token;
    size_t count;
    llmc_finish finish;
    check(llmc_request_next(request_, &token, 1, 0, &count, &finish));
  }

private:
  llmc_request *request_;
};

using Ids =
    nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

class Engine {
public:
  Engine(const std::string &path, const LoadOptions &options) {
    llmc_engine_options native = options.options();
    nb::gil_scoped_release release;
    check(llmc_engine_load(path.c_str(), &native, &engine_));
  }
  ~Engine() { close(); }
  Engine(const Engine &) = delete;

  void close() {
    nb::gil_scoped_release release;
    llmc_engine_free(std::exchange(engine_, nullptr));
  }

  nb::dict info() const {
    llmc_engine_info info;
    check(llmc_engine_get_info(engine_, &info));
    nb::dict out;
    out["vocab_size"] = info.vocab_size;
    out["max_batch_size"] = info.max_batch_size;
    out["max_num_tokens"] = info.max_num_tokens;
    out["max_seq_len"] = info.max_seq_len;
    out["max_logit_rows"] = info.max_logit_rows;
    out["block_size"] = info.block_size;
    out["num_blocks"] = info.num_blocks;
    out["num_threads"] = info.num_threads;
    out["weight_bytes"] = info.weight_bytes;
    out["arena_bytes"] = info.arena_bytes;
    out["kv_cache_bytes"] = info.kv_cache_bytes;
    out["bos_token_id"] = info.bos_token_id;
    out["eos_token_ids"] = std::vector<int32_t>(
        info.eos_token_ids, info.eos_token_ids + info.num_eos_token_ids);
    out["target"] = info.target;
    out["architecture"] = info.architecture;
    out["model_name"] = info.model_name;
    return out;
  }

  nb::dict stats() const {
    llmc_engine_stats stats;
    check(llmc_engine_get_stats(engine_, &stats));
    nb::dict out;
    out["num_running"] = stats.num_running;
    out["num_waiting"] = stats.num_waiting;
    out["blocks_used"] = stats.blocks_used;
    out["blocks_total"] = stats.blocks_total;
    out["num_steps"] = stats.num_steps;
    out["num_prompt_tokens"] = stats.num_prompt_tokens;
    out["num_generated_tokens"] = stats.num_generated_tokens;
    out["num_preemptions"] = stats.num_preemptions;
    out["step_seconds"] = stats.step_seconds;
    out["sample_seconds"] = stats.sample_seconds;
    out["host_seconds"] = stats.host_seconds;
    out["num_graphs"] = stats.num_graphs;
    out["graph_launches"] = stats.graph_launches;
    out["blocks_idle"] = stats.blocks_idle;
    out["num_evictions"] = stats.num_evictions;
    out["num_looked_up_tokens"] = stats.num_looked_up_tokens;
    out["num_reused_tokens"] = stats.num_reused_tokens;
    out["num_deadlines_missed"] = stats.num_deadlines_missed;
    out["num_failed_steps"] = stats.num_failed_steps;
    out["consecutive_failed_steps"] = stats.consecutive_failed_steps;
    out["num_partially_reused_tokens"] = stats.num_partially_reused_tokens;
    out["num_forks"] = stats.num_forks;
    out["host_blocks_used"] = stats.host_blocks_used;
    out["host_blocks_total"] = stats.host_blocks_total;
    out["num_blocks_swapped_out"] = stats.num_blocks_swapped_out;
    out["num_blocks_swapped_in"] = stats.num_blocks_swapped_in;
    return out;
  }

  // Empty, or why no request can be served.
  std::string health() const {
    return llmc_engine_check_health(engine_) ? llmc_last_error() : "";
  }

  // Name -> {sum, buckets: [(upper bound, count)]}, of those that are not
  // empty.
  nb::dict histograms() const {
    nb::dict out;
    for (int metric = 0; metric < LLMC_NUM_METRICS; ++metric) {
      llmc_histogram one;
      check(llmc_engine_get_histogram(engine_, static_cast<llmc_metric>(metric),
                                      &one));
      nb::list buckets;
      for (int i = 0; i < one.num_buckets; ++i)
        if (one.counts[i] > 0)
          buckets.append(nb::make_tuple(one.bounds[i], one.counts[i]));
      nb::dict value;
      value["sum"] = one.sum;
      value["buckets"] = buckets;
      out[one.name] = value;
    }
    return out;
  }

  // One request for each of `options`, under keys that follow each other.
  std::vector<std::unique_ptr<Request>>
  submit(Ids prompt, PyMailbox &mailbox, int64_t first_key,
         const std::vector<const SamplingOptions *> &options) {
    std::vector<std::unique_ptr<Subscription>> subscriptions;
    std::vector<SamplingArrays> arrays; // keep what params point to
    std::vector<llmc_sampling_params> params;
    std::vector<void *> users;
    for (const SamplingOptions *one : options) {
      subscriptions.push_back(std::make_unique<Subscription>(
          Subscription{mailbox.mailbox, first_key++, one->callbacks()}));
      users.push_back(subscriptions.back().get());
      arrays.emplace_back(*one, subscriptions.back()->callbacks.get());
      params.push_back(*arrays.back().params());
    }
    std::vector<llmc_request *> requests(options.size());
    check(llmc_engine_submit_forks(
        engine_, prompt.data(), prompt.size(), params.data(), params.size(),
        Subscription::deliver, users.data(), requests.data()));
    for (auto &subscription : subscriptions)
      subscription.release(); // freed by its last delivery
    std::vector<std::unique_ptr<Request>> handles;
    for (llmc_request *request : requests)
      handles.push_back(std::make_unique<Request>(request));
    return handles;
  }

  nb::ndarray<nb::numpy, float, nb::ndim<2>>
  forward(Ids tokens, Ids lengths, std::optional<Ids> rows,
          std::optional<Ids> num_rows, int chunk_tokens) {
    llmc_engine_info info;
    check(llmc_engine_get_info(engine_, &info));
    size_t total = rows ? rows->size() : tokens.size();
    size_t width = static_cast<size_t>(info.vocab_size);
    auto logits = std::make_unique<float[]>(total * width);
    {
      nb::gil_scoped_release release;
      check(llmc_engine_forward(engine_, tokens.data(), lengths.data(),
                                lengths.size(), rows ? rows->data() : nullptr,
                                num_rows ? num_rows->data() : nullptr,
                                chunk_tokens, logits.get(), total * width));
    }
    float *data = logits.release();
    nb::capsule owner(
        data, [](void *p) noexcept { delete[] static_cast<float *>(p); });
    return {data, {total, width}, owner};
  }

private:
  llmc_engine *engine_ = nullptr;
};

class Profiler {
public:
  Profiler(const std::string &path, const LoadOptions &options) {
    llmc_engine_options native = options.options();
    nb::gil_scoped_release release;
    check(llmc_profiler_load(path.c_str(), &native, &profiler_));
  }
  ~Profiler() { close(); }
  Profiler(const Profiler &) = delete;

  void close() {
    nb::gil_scoped_release release;
    llmc_profiler_free(std::exchange(profiler_, nullptr));
  }

  double bandwidth() {
    nb::gil_scoped_release release;
    double result = 0;
    check(llmc_profiler_bandwidth(profiler_, &result));
    return result;
  }

  nb::tuple step(int num_sequences, int num_tokens, int context, int repeats) {
    double seconds = 0;
    const llmc_kernel_time *times = nullptr;
    size_t count = 0;
    {
      nb::gil_scoped_release release;
      check(llmc_profiler_step(profiler_, num_sequences, num_tokens, context,
                               repeats, &seconds, &times, &count));
    }
    nb::list kernels;
    for (size_t i = 0; i < count; ++i)
      kernels.append(nb::make_tuple(times[i].name, times[i].num_launches,
                                    times[i].seconds, times[i].chain_seconds));
    return nb::make_tuple(seconds, kernels);
  }

private:
  llmc_profiler *profiler_ = nullptr;
};

} // namespace

NB_MODULE(_runtime, m) {
  m.doc() = "The C API of the llmc runtime (runtime/include/llmc/llmc.h).";
  nb::register_exception_translator(translate);

  nb::class_<PyMailbox>(m, "Mailbox", "Where tokens of requests arrive.")
      .def(nb::init<>())
      .def(
          "take",
          [](PyMailbox &self, double timeout) {
            std::vector<Event> events;
            {
              nb::gil_scoped_release release;
              events = self.mailbox->take(timeout);
            }
            nb::list out;
            for (const Event &event : events) {
              nb::list ids, logprobs, largest;
              for (const Token &token : event.tokens) {
                ids.append(token.id);
                logprobs.append(token.logprob);
                if (!token.top.empty())
                  largest.append(as_dict(token.top));
              }
              out.append(nb::make_tuple(
                  event.key, nb::make_tuple(ids, logprobs, largest,
                                            static_cast<int>(event.finish))));
            }
            return out;
          },
          "timeout"_a,
          "Waits for events and returns them as (key, (ids, logprobs, largest "
          "logprobs, finish)).");

  nb::class_<Request>(m, "Request")
      .def("cancel", &Request::cancel)
      .def("set_priority", &Request::set_priority, "priority"_a)
      .def_prop_ro("reused_tokens", &Request::reused_tokens)
      .def("prompt_logprobs", &Request::prompt_logprobs)
      .def("raise_error", &Request::raise_error);

  bind_load_options(m);
  bind_sampling_options(m);

  nb::class_<Profiler>(m, "Profiler")
      .def(nb::init<const std::string &, const LoadOptions &>(), "path"_a,
           "options"_a)
      .def("close", &Profiler::close)
      .def("bandwidth", &Profiler::bandwidth)
      .def("step", &Profiler::step, "num_sequences"_a, "num_tokens"_a,
           "context"_a, "repeats"_a = 5);

  nb::class_<Engine>(m, "Engine")
      .def(nb::init<const std::string &, const LoadOptions &>(), "path"_a,
           "options"_a)
      .def("close", &Engine::close)
      .def("info", &Engine::info)
      .def("stats", &Engine::stats)
      .def("histograms", &Engine::histograms)
      .def("health", &Engine::health)
      .def("submit", &Engine::submit, "prompt"_a, "mailbox"_a, "first_key"_a,
           "options"_a)
      .def("forward", &Engine::forward, "tokens"_a, "lengths"_a,
           "rows"_a = nb::none(), "num_rows"_a = nb::none(),
           "chunk_tokens"_a = 0);

  m.attr("version") = llmc_version();
  m.attr("FINISH_RUNNING") = static_cast<int>(LLMC_RUNNING);
  m.attr("FINISH_STOP") = static_cast<int>(LLMC_FINISH_STOP);
  m.attr("FINISH_LENGTH") = static_cast<int>(LLMC_FINISH_LENGTH);
  m.attr("FINISH_CANCELLED") = static_cast<int>(LLMC_FINISH_CANCELLED);
  m.attr("FINISH_ERROR") = static_cast<int>(LLMC_FINISH_ERROR);
  m.attr("FINISH_DEADLINE") = static_cast<int>(LLMC_FINISH_DEADLINE);
}
