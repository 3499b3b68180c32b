#include "load_model.h"

#include "engine_file.h"
#include "error.h"
#include "thread_pool.h"

#include <algorithm>

namespace llmc {

namespace {

constexpr size_t kVerifyWeightsBelow = size_t{1} << 30;

std::unique_ptr<Backend> make_backend(const TargetInfo &target,
                                      const llmc_engine_options &options) {
  if (target.name == "host")
    return make_host_backend(target, {.num_threads = options.num_threads});
  return make_cuda_backend(
      target, {.device = options.device,
               .library = options.cuda_library ? options.cuda_library : "",
               .graphs = options.cuda_graphs != 0,
               .stall_seconds = stall_seconds(target, options)});
}

bool wants_verification(llmc_verify verify, const Manifest &manifest) {
  if (verify != LLMC_VERIFY_AUTO)
    return verify == LLMC_VERIFY_ALWAYS;
  size_t bytes = 0;
  for (const WeightInfo &weight : manifest.weights)
    bytes += weight.bytes();
  return bytes < kVerifyWeightsBelow;
}

} // namespace

// A host engine may compute a long prompt for minutes.
double stall_seconds(const TargetInfo &target,
                     const llmc_engine_options &options) {
  if (options.stall_seconds != 0)
    return std::max(options.stall_seconds, 0.0);
  return target.name == "host" ? 600 : 60;
}

int narrowed(const char *name, int wanted, int limit) {
  if (wanted < 0)
    fail(LLMC_INVALID_ARGUMENT, name, " must not be negative, found ", wanted);
  if (wanted > limit)
    fail(LLMC_INVALID_ARGUMENT, name, " ", wanted,
         " is above the engine's limit ", limit,
         "; recompile it with a larger --", name);
  return wanted == 0 ? limit : wanted;
}

LoadedModel load_model(const std::string &path,
                       const llmc_engine_options &options) {
  if (options.policy < LLMC_GUARANTEED_NO_EVICT ||
      options.policy > LLMC_STATIC_BATCH)
    fail(LLMC_INVALID_ARGUMENT, "policy must be 0 (guaranteed_no_evict), 1 ",
         "(max_utilization) or 2 (static_batch), found ",
         static_cast<int>(options.policy));
  if (options.max_waiting < 0)
    fail(LLMC_INVALID_ARGUMENT, "max_waiting must not be negative, found ",
         options.max_waiting);
  if (options.host_memory_bytes < 0 ||
      (options.host_memory_bytes > 0 && options.policy != LLMC_MAX_UTILIZATION))
    fail(LLMC_INVALID_ARGUMENT,
         "host_memory_bytes must be 0, or positive with policy "
         "max_utilization (1), the only one that preempts; found ",
         options.host_memory_bytes, " with policy ",
         static_cast<int>(options.policy));
  EngineFile file = EngineFile::open(path);
  LoadedModel model{file.manifest(), {}, nullptr};
  const Manifest &manifest = model.manifest;
  const Limits &limits = manifest.limits;

  // In the order in which a mistake is cheapest to find: target, parts, plan,
  // weights.
  std::unique_ptr<Backend> backend = make_backend(manifest.target, options);
  file.verify_parts();
  Plan plan = file.read_plan();
  std::map<std::string, TensorView> weights = file.read_weights();
  if (wants_verification(options.verify_weights, manifest))
    EngineFile::verify_weights(manifest, weights, available_physical_cores());
  for (const CodeObject &code : plan.code)
    backend->load_code(code, file.part(code.path));

  SchedulerConfig &config = model.config;
  config.policy = options.policy;
  config.max_num_tokens =
      narrowed("max_num_tokens", options.max_num_tokens, limits.max_num_tokens);
  config.max_batch_size =
      narrowed("max_batch_size", options.max_batch_size, limits.max_batch_size);
  config.max_batch_size = std::min(
      {config.max_batch_size, config.max_num_tokens, plan.max_logit_rows});
  config.max_logit_rows = plan.max_logit_rows;

  model.runner = std::make_unique<ModelRunner>(
      std::move(backend), manifest, std::move(plan), weights,
      KvCacheOptions{options.kv_cache_tokens, options.kv_cache_bytes,
                     options.free_memory_fraction, options.host_memory_bytes});
  return model;
}

} // namespace llmc
