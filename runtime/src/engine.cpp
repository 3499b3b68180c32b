#include "engine.h"

#include "error.h"
#include "load_model.h"
#include "thread_pool.h"

#include <algorithm>

namespace llmc {

namespace {

void check_serving(const ServingParams &serving) {
  check_priority(serving.priority);
  if (serving.retention_priority < 0 ||
      serving.retention_priority > kMaxRetention)
    fail(LLMC_INVALID_ARGUMENT, "retention_priority must be in [0, ",
         kMaxRetention, "] (lower is evicted first), found ",
         serving.retention_priority);
  if (!(serving.timeout_seconds >= 0)) // NaN fails as well
    fail(LLMC_INVALID_ARGUMENT,
         "timeout_seconds must be positive, or 0 for none, found ",
         serving.timeout_seconds);
}

std::chrono::steady_clock::time_point deadline_after(double seconds) {
  // A year is as good as never and keeps the arithmetic from overflowing.
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(std::min(seconds, 3e7)));
}

} // namespace

void check_priority(int priority) {
  if (priority < -kMaxPriority || priority > kMaxPriority)
    fail(LLMC_INVALID_ARGUMENT, "priority must be in [", -kMaxPriority, ", ",
         kMaxPriority, "] (lower goes first), found ", priority);
}

std::unique_ptr<Engine> Engine::load(const std::string &path,
                                     const llmc_engine_options &options) {
  std::unique_ptr<Engine> engine(new Engine);
  LoadedModel model = load_model(path, options);
  engine->manifest_ = std::move(model.manifest);
  engine->config_ = model.config;
  engine->runner_ = std::move(model.runner);
  engine->kv_cache_ = std::make_unique<KvCacheManager>(
      engine->runner_->num_blocks(), engine->manifest_.limits.block_size,
      KvCacheSettings{.enable_reuse = options.enable_block_reuse != 0,
                      .enable_partial_reuse = options.enable_partial_reuse != 0,
                      .num_host_blocks = engine->runner_->num_host_blocks()});
  engine->max_waiting_ = options.max_waiting;
  engine->executor_ = std::make_unique<Executor>(
      *engine->runner_, *engine->kv_cache_, engine->config_,
      engine->manifest_.model,
      ExecutorOptions{
          .overlap = options.overlap != 0,
          .trace_file = options.trace_file ? options.trace_file : "",
          // Later than a backend that watches its device.
          .stall_seconds =
              1.25 * stall_seconds(engine->manifest_.target, options)});
  return engine;
}

void Engine::check_tokens(std::span<const int32_t> tokens,
                          const char *what) const {
  if (tokens.empty())
    fail(LLMC_REFUSED, "the ", what, " is empty: at least one token is needed");
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= manifest_.model.vocab_size)
      fail(LLMC_REFUSED, "the ", what, " has token id ", tokens[i],
           " at position ", i, ", outside the vocabulary of ",
           manifest_.model.vocab_size);
}

std::vector<std::shared_ptr<RequestStream>>
Engine::submit(std::span<const int32_t> prompt,
               std::vector<Submission> submissions) {
  std::vector<std::shared_ptr<Request>> requests;
  std::vector<std::shared_ptr<RequestStream>> streams;
  for (Submission &one : submissions) {
    requests.push_back(make_request(prompt, std::move(one)));
    streams.push_back(requests.back()->stream);
    if (requests.size() == 1)
      continue;
    if (requests.back()->sequence.cache_salt !=
        requests.front()->sequence.cache_salt)
      fail(LLMC_INVALID_ARGUMENT, "requests for one prompt must have the same "
                                  "cache_salt: they share its KV blocks");
    requests.back()->leader = requests.front();
  }
  if (std::ranges::any_of(requests, [](const auto &request) {
        return request->params.beams.width > 1;
      }))
    form_beams(requests);
  std::shared_ptr<BeamGroup> group = requests.front()->group;
  try {
    executor_->submit(std::move(requests), max_waiting_);
  } catch (...) {
    if (group)
      group->members.clear();
    throw;
  }
  return streams;
}

// All of them become answers of one beam search.
void Engine::form_beams(std::vector<std::shared_ptr<Request>> &requests) const {
  const Request &first = *requests.front();
  const int width = static_cast<int>(requests.size());
  for (const auto &request : requests)
    if (request->params.beams.width != width)
      fail(LLMC_INVALID_ARGUMENT,
           "a beam search is submitted as beam_width requests for one prompt, "
           "all of them with that beam_width: found ",
           width, " requests and a beam_width of ",
           request->params.beams.width);
  if (width > config_.max_batch_size || width > runner_->plan().max_logit_rows)
    fail(LLMC_REFUSED, "a beam_width of ", width,
         " needs as many sequences in "
         "a step, max_batch_size is ",
         std::min(config_.max_batch_size, runner_->plan().max_logit_rows));
  int needed = width * kv_cache_->blocks_for(first.max_cached_tokens()),
      usable = kv_cache_->pool().num_usable();
  if (needed > usable)
    fail(
        LLMC_REFUSED, "the beam search may need ", needed,
        " KV blocks (beam_width ", width,
        " times those of prompt and output), "
        "the pool has ",
        usable,
        "; lower beam_width or max_tokens, or load the engine with a larger KV "
        "cache");
  std::vector<int32_t> stops = first.params.stop_token_ids;
  if (!first.params.ignore_eos)
    stops.insert(stops.end(), manifest_.model.eos_token_ids.begin(),
                 manifest_.model.eos_token_ids.end());
  std::ranges::sort(stops);
  stops.erase(std::ranges::unique(stops).begin(), stops.end());
  auto group = std::make_shared<BeamGroup>(
      BeamSearch(first.params.beams, std::move(stops),
                 first.max_total_tokens - first.sequence.num_prompt_tokens),
      requests);
  for (const auto &request : requests) {
    request->leader.reset();
    request->group = group;
  }
}

std::shared_ptr<Request> Engine::make_request(std::span<const int32_t> prompt,
                                              Submission submission) const {
  auto &[params, serving, callback, user] = submission;
  const Limits &limits = manifest_.limits;
  check_and_normalise(params, manifest_.model.vocab_size);
  check_tokens(prompt, "prompt");
  if (prompt.size() >= static_cast<size_t>(limits.max_seq_len))
    fail(LLMC_REFUSED, "the prompt has ", prompt.size(),
         " tokens; with at least one generated token that exceeds max_seq_len ",
         limits.max_seq_len,
         "; shorten the prompt or recompile with a larger --max-seq-len");

  check_serving(serving);
  auto request = std::make_shared<Request>();
  int64_t total = static_cast<int64_t>(prompt.size()) + params.max_tokens;
  request->max_total_tokens =
      static_cast<int>(std::min<int64_t>(total, limits.max_seq_len));
  int needed = kv_cache_->blocks_for(request->max_cached_tokens()),
      usable = kv_cache_->pool().num_usable();
  if (needed > usable)
    fail(LLMC_REFUSED, "the request may need ", needed, " KV blocks of ",
         limits.block_size, " tokens (prompt ", prompt.size(),
         ", output up to ",
         request->max_total_tokens - static_cast<int>(prompt.size()),
         "), the pool has ", usable,
         "; lower max_tokens or load the engine with a larger KV cache");
  request->sequence.tokens.reserve(
      static_cast<size_t>(request->max_total_tokens));
  request->sequence.blocks.reserve(static_cast<size_t>(needed));
  request->sequence.tokens.assign(prompt.begin(), prompt.end());
  request->sequence.num_prompt_tokens = static_cast<int>(prompt.size());
  request->params = std::move(params);
  if (request->params.has_rules())
    request->rules = std::make_unique<LogitRules>(request->params,
                                                  manifest_.model.eos_token_ids,
                                                  manifest_.model.vocab_size);
  if (request->params.prompt_logprobs >= 0)
    for (int32_t token : prompt)
      request->prompt_logprobs.push_back({token, {}});
  request->sequence.cache_salt = serving.cache_salt;
  request->sequence.retention_priority = serving.retention_priority;
  if (serving.timeout_seconds > 0)
    request->deadline = deadline_after(serving.timeout_seconds);
  request->stream =
      std::make_shared<RequestStream>(callback, user, executor_->attention());
  request->stream->set_priority(serving.priority);
  return request;
}

void Engine::score(std::span<const ForwardSequence> sequences, int chunk_tokens,
                   float *logits) {
  int chunk = narrowed("chunk_tokens", chunk_tokens, config_.max_num_tokens);
  for (const ForwardSequence &sequence : sequences) {
    check_tokens(sequence.tokens, "sequence");
    if (sequence.tokens.size() >
        static_cast<size_t>(manifest_.limits.max_seq_len))
      fail(LLMC_REFUSED, "a sequence has ", sequence.tokens.size(),
           " tokens, above max_seq_len ", manifest_.limits.max_seq_len);
    int needed =
            kv_cache_->blocks_for(static_cast<int64_t>(sequence.tokens.size())),
        usable = kv_cache_->pool().num_usable();
    if (needed > usable)
      fail(LLMC_REFUSED, "a sequence of ", sequence.tokens.size(),
           " tokens needs ", needed, " KV blocks, the pool has ", usable);
    int64_t previous = -1;
    for (int32_t row : sequence.rows) {
      if (row <= previous || static_cast<size_t>(row) >= sequence.tokens.size())
        fail(LLMC_INVALID_ARGUMENT, "row ", row, " after row ", previous,
             ": rows must ascend and lie below the length ",
             sequence.tokens.size());
      previous = row;
    }
  }
  executor_->score(sequences,
                   {std::min(config_.max_batch_size, chunk), chunk,
                    runner_->plan().max_logit_rows},
                   logits);
}

llmc_engine_info Engine::info() const {
  const ModelInfo &model = manifest_.model;
  llmc_engine_info out{};
  out.vocab_size = model.vocab_size;
  out.max_batch_size = config_.max_batch_size;
  out.max_num_tokens = config_.max_num_tokens;
  out.max_seq_len = manifest_.limits.max_seq_len;
  out.max_logit_rows = runner_->plan().max_logit_rows;
  out.block_size = manifest_.limits.block_size;
  out.num_blocks = kv_cache_->pool().num_usable();
  out.num_threads = manifest_.target.name == "host"
                        ? runner_->thread_pool().num_threads()
                        : 0;
  out.weight_bytes = static_cast<int64_t>(runner_->weight_bytes());
  out.arena_bytes = static_cast<int64_t>(runner_->plan().arena_bytes);
  out.kv_cache_bytes = static_cast<int64_t>(runner_->kv_cache_bytes());
  out.bos_token_id = model.bos_token_id;
  out.num_eos_token_ids = static_cast<int32_t>(model.eos_token_ids.size());
  out.eos_token_ids = model.eos_token_ids.data();
  out.target = manifest_.target.name.c_str();
  out.architecture = model.architecture.c_str();
  out.model_name = model.name.c_str();
  return out;
}

} // namespace llmc
