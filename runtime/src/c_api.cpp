// The C API: catches every exception and turns it into a status and a message.

#include "c_guard.h"
#include "c_params.h"
#include "load_model.h"

#include <algorithm>
#include <cstddef>
#include <span>

struct llmc_request {
  std::shared_ptr<llmc::RequestStream> stream;
};
struct llmc_profiler {
  llmc::LoadedModel model;
  std::vector<llmc_kernel_time> kernels; // of the last step
};

namespace {

thread_local std::string last_error;

using llmc::guarded;
using llmc::require;

void submit(llmc_engine *engine, std::span<const int32_t> prompt,
            std::span<const llmc_sampling_params *const> params,
            llmc_token_callback callback, void *const *users,
            llmc_request **out) {
  std::fill_n(out, params.size(), nullptr);
  std::vector<llmc::Submission> submissions;
  std::vector<std::unique_ptr<llmc_request>> requests;
  for (size_t i = 0; i < params.size(); ++i) {
    llmc_sampling_params chosen = llmc::known_params(params[i]);
    submissions.push_back({llmc::sampling_params(chosen),
                           llmc::serving_params(chosen), callback,
                           users ? users[i] : nullptr});
    requests.push_back(std::make_unique<llmc_request>());
  }
  auto streams = engine->engine->submit(prompt, std::move(submissions));
  for (size_t i = 0; i < params.size(); ++i) {
    requests[i]->stream = std::move(streams[i]);
    out[i] = requests[i].release();
  }
}

} // namespace

llmc_status llmc::record_error(llmc_status status, const char *message) {
  try {
    last_error = message;
  } catch (...) {
  }
  return status;
}

extern "C" {

const char *llmc_last_error(void) { return last_error.c_str(); }

const char *llmc_version(void) { return LLMC_VERSION; }

const char *llmc_status_name(llmc_status status) {
  switch (status) {
  case LLMC_OK:
    return "ok";
  case LLMC_INVALID_ARGUMENT:
    return "invalid argument";
  case LLMC_NOT_FOUND:
    return "not found";
  case LLMC_BAD_ENGINE:
    return "bad engine";
  case LLMC_UNSUPPORTED:
    return "unsupported";
  case LLMC_STRIPPED:
    return "stripped engine";
  case LLMC_OUT_OF_MEMORY:
    return "out of memory";
  case LLMC_REFUSED:
    return "refused";
  case LLMC_DEVICE_ERROR:
    return "device error";
  case LLMC_TIMEOUT:
    return "timeout";
  case LLMC_SHUT_DOWN:
    return "shut down";
  case LLMC_INTERNAL:
    return "internal error";
  }
  return "unknown status";
}

llmc_engine_options llmc_engine_options_default(void) {
  llmc_engine_options options{};
  options.policy = LLMC_GUARANTEED_NO_EVICT;
  options.verify_weights = LLMC_VERIFY_AUTO;
  options.cuda_graphs = 1;
  options.enable_block_reuse = 1;
  options.overlap = 1;
  options.enable_partial_reuse = 1;
  return options;
}

llmc_status llmc_engine_load(const char *path,
                             const llmc_engine_options *options,
                             llmc_engine **out) {
  return guarded([&] {
    require(path && out, "llmc_engine_load: path and out must not be NULL");
    *out = nullptr;
    auto engine = std::make_unique<llmc_engine>();
    engine->engine = llmc::Engine::load(
        path, options ? *options : llmc_engine_options_default());
    *out = engine.release();
  });
}

void llmc_engine_free(llmc_engine *engine) { delete engine; }

llmc_status llmc_engine_get_info(const llmc_engine *engine,
                                 llmc_engine_info *out) {
  return guarded([&] {
    require(engine && out,
            "llmc_engine_get_info: engine and out must not be NULL");
    *out = engine->engine->info();
  });
}

llmc_status llmc_engine_get_stats(const llmc_engine *engine,
                                  llmc_engine_stats *out) {
  return guarded([&] {
    require(engine && out,
            "llmc_engine_get_stats: engine and out must not be NULL");
    *out = engine->engine->stats();
  });
}

llmc_sampling_params llmc_sampling_params_default(void) {
  return llmc::default_params();
}

llmc_status llmc_engine_submit(llmc_engine *engine, const int32_t *prompt,
                               size_t prompt_length,
                               const llmc_sampling_params *params,
                               llmc_token_callback callback, void *user,
                               llmc_request **out) {
  return guarded([&] {
    require(engine && out && (prompt || prompt_length == 0),
            "llmc_engine_submit: engine, prompt and out must not be NULL");
    submit(engine, {prompt, prompt_length}, {&params, 1}, callback, &user, out);
  });
}

llmc_status llmc_engine_submit_forks(llmc_engine *engine, const int32_t *prompt,
                                     size_t prompt_length,
                                     const llmc_sampling_params *params,
                                     size_t num_requests,
                                     llmc_token_callback callback,
                                     void *const *users, llmc_request **out) {
  return guarded([&] {
    require(engine && out && params && (prompt || prompt_length == 0),
            "llmc_engine_submit_forks: engine, prompt, params and out must not "
            "be NULL");
    require(num_requests > 0,
            "llmc_engine_submit_forks: num_requests must be at least 1");
    std::vector<const llmc_sampling_params *> all;
    // Elements lie as far apart as the caller's header says.
    const auto *bytes = reinterpret_cast<const std::byte *>(params);
    for (size_t i = 0; i < num_requests; ++i)
      all.push_back(reinterpret_cast<const llmc_sampling_params *>(
          bytes + i * params->struct_size));
    submit(engine, {prompt, prompt_length}, all, callback, users, out);
  });
}

llmc_status llmc_request_next(llmc_request *request, llmc_token *tokens,
                              size_t capacity, double timeout_seconds,
                              size_t *num_tokens, llmc_finish *finish) {
  if (num_tokens)
    *num_tokens = 0;
  return guarded([&] {
    require(request && tokens && capacity > 0 && num_tokens && finish,
            "llmc_request_next: NULL argument or no capacity");
    *num_tokens =
        request->stream->next(tokens, capacity, timeout_seconds, *finish);
  });
}

llmc_status llmc_request_prompt_logprobs(const llmc_request *request,
                                         const llmc_token **tokens,
                                         size_t *num_tokens) {
  return guarded([&] {
    require(request && tokens && num_tokens,
            "llmc_request_prompt_logprobs: NULL argument");
    std::span<const llmc_token> found = request->stream->prompt_logprobs();
    *tokens = found.data();
    *num_tokens = found.size();
  });
}

void llmc_request_cancel(llmc_request *request) {
  if (request)
    request->stream->cancel();
}

llmc_status llmc_request_set_priority(llmc_request *request, int32_t priority) {
  return guarded([&] {
    require(request, "llmc_request_set_priority: request must not be NULL");
    llmc::check_priority(priority);
    request->stream->set_priority(priority);
  });
}

int32_t llmc_request_reused_tokens(const llmc_request *request) {
  return request ? request->stream->reused_tokens() : -1;
}

void llmc_request_free(llmc_request *request) {
  llmc_request_cancel(request);
  delete request;
}

llmc_status llmc_engine_forward(llmc_engine *engine, const int32_t *tokens,
                                const int32_t *lengths, size_t num_sequences,
                                const int32_t *rows, const int32_t *num_rows,
                                int32_t chunk_tokens, float *logits,
                                size_t logits_size) {
  return guarded([&] {
    require(engine && (num_sequences == 0 || (tokens && lengths && logits)),
            "llmc_engine_forward: NULL argument");
    require((rows == nullptr) == (num_rows == nullptr),
            "llmc_engine_forward: give both rows and num_rows or none");
    std::vector<llmc::ForwardSequence> sequences(num_sequences);
    size_t total_rows = 0;
    for (size_t i = 0; i < num_sequences; ++i) {
      require(lengths[i] >= 0 && (!num_rows || num_rows[i] >= 0),
              "llmc_engine_forward: negative length");
      size_t length = static_cast<size_t>(lengths[i]);
      sequences[i].tokens = {tokens, length};
      tokens += length;
      if (rows) {
        sequences[i].rows.assign(rows, rows + num_rows[i]);
        rows += num_rows[i];
      } else {
        for (int32_t row = 0; row < lengths[i]; ++row)
          sequences[i].rows.push_back(row);
      }
      total_rows += sequences[i].rows.size();
    }
    size_t expected =
        total_rows * static_cast<size_t>(engine->engine->info().vocab_size);
    if (logits_size != expected)
      llmc::fail(LLMC_INVALID_ARGUMENT, "llmc_engine_forward: ", total_rows,
                 " rows need ", expected, " floats of logits, the buffer has ",
                 logits_size);
    engine->engine->score(sequences, chunk_tokens, logits);
  });
}

llmc_status llmc_profiler_load(const char *path,
                               const llmc_engine_options *options,
                               llmc_profiler **out) {
  return guarded([&] {
    require(path && out, "llmc_profiler_load: path and out must not be NULL");
    *out = nullptr;
    *out = new llmc_profiler{
        llmc::load_model(path,
                         options ? *options : llmc_engine_options_default()),
        {}};
  });
}

void llmc_profiler_free(llmc_profiler *profiler) { delete profiler; }

llmc_status llmc_profiler_bandwidth(llmc_profiler *profiler,
                                    double *bytes_per_second) {
  return guarded([&] {
    require(profiler && bytes_per_second,
            "llmc_profiler_bandwidth: NULL argument");
    *bytes_per_second = profiler->model.runner->copy_bandwidth();
  });
}

llmc_status llmc_profiler_step(llmc_profiler *profiler, int32_t num_sequences,
                               int32_t num_tokens, int32_t context,
                               int32_t repeats, double *step_seconds,
                               const llmc_kernel_time **kernels,
                               size_t *num_kernels) {
  return guarded([&] {
    require(profiler && step_seconds && kernels && num_kernels,
            "llmc_profiler_step: NULL argument");
    llmc::StepProfile profile = profiler->model.runner->profile(
        num_sequences, num_tokens, context, repeats);
    profiler->kernels.clear();
    for (const llmc::KernelTime &time : profile.kernels)
      profiler->kernels.push_back({time.kernel->name.c_str(), time.num_launches,
                                   time.seconds, time.chain_seconds});
    *step_seconds = profile.seconds;
    *kernels = profiler->kernels.data();
    *num_kernels = profiler->kernels.size();
  });
}

} // extern "C"
