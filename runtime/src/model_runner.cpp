#include "model_runner.h"

#include "checked.h"
#include "error.h"

#include <algorithm>
#include <cstring>

namespace llmc {

namespace {

constexpr size_t kAlignment = 256;
size_t align(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

Sizes max_sizes(const Limits &limits, const Plan &plan) {
  return {.T = limits.max_num_tokens,
          .S = limits.max_batch_size,
          .R = plan.max_logit_rows,
          .NB = 0,
          .B = limits.max_blocks_per_seq};
}

} // namespace

ModelRunner::ModelRunner(std::unique_ptr<Backend> backend,
                         const Manifest &manifest, Plan plan,
                         const std::map<std::string, TensorView> &weights,
                         const KvCacheOptions &kv_cache)
    : backend_(std::move(backend)), plan_(std::move(plan)),
      vocab_size_(manifest.model.vocab_size), limits_(manifest.limits),
      inputs_(max_sizes(limits_, plan_)) {
  upload_weights(manifest, weights);
  memory_.arena = backend_->allocate(plan_.arena_bytes, "activation arena");
  StepBlock step_block = backend_->allocate_step_block(inputs_.bytes());
  memory_.step_block = step_block.device;
  input_writer_.emplace(inputs_, step_block.staging);
  allocate_kv_cache(limits_,
                    kv_cache); // last: it takes a share of what is left
  allocate_host_blocks(kv_cache);
  // What steps fetch; scoring may want more rows once.
  size_t rows = static_cast<size_t>(
      std::min(plan_.max_logit_rows, limits_.max_batch_size));
  if (samples_on_device())
    backend_->reserve_slots(static_cast<size_t>(plan_.max_logit_rows) *
                            sizeof(int32_t));
  else
    backend_->reserve_output(rows * static_cast<size_t>(vocab_size_) *
                             sizeof(float));
  copies_.reserve(rows);
  backend_->finish_uploads();
  const Sizes fixed{.T = 0,
                    .S = 0,
                    .R = 0,
                    .NB = num_blocks_,
                    .B = limits_.max_blocks_per_seq};
  executor_ = std::make_unique<PlanExecutor>(
      *backend_, plan_, inputs_, memory_, fixed,
      std::min(plan_.max_logit_rows, limits_.max_batch_size));
}

void ModelRunner::upload_weights(
    const Manifest &manifest,
    const std::map<std::string, TensorView> &weights) {
  size_t total = 0, row = 0;
  for (const WeightInfo &weight : manifest.weights) {
    total += align(weight.bytes());
    if (weight.shape.size() == 2 && weight.shape[0] > 0)
      row =
          std::max(row, weight.bytes() / static_cast<size_t>(weight.shape[0]));
  }
  // A row without a finite logit samples token -1, and with overlap the next
  // step looks that up before the host knows: row -1 of the table is memory
  // that can be read.
  const size_t margin = align(row);
  uint64_t next = backend_->allocate(margin + total, "weights") + margin;
  for (const WeightInfo &weight : manifest.weights) {
    std::span<const std::byte> bytes = weights.at(weight.name).bytes;
    backend_->upload(next, bytes);
    memory_.weights.emplace(weight.name, next);
    next += align(bytes.size());
  }
  weight_bytes_ = total;
}

void ModelRunner::allocate_kv_cache(const Limits &limits,
                                    const KvCacheOptions &options) {
  num_blocks_ = size_kv_cache(limits, plan_.kv_bytes_per_block(), options,
                              backend_->free_memory(),
                              backend_->default_kv_cache_fraction());
  auto layer_bytes = [&](const KvLayer &layer, int head_dim) {
    return align(size_t(num_blocks_) * layer.heads * plan_.block_size *
                 head_dim * info(layer.dtype).bytes);
  };
  size_t total = 0;
  for (const KvLayer &layer : plan_.kv_layers)
    total += layer_bytes(layer, layer.head_dim) +
             layer_bytes(layer, layer.v_head_dim);
  uint64_t next = backend_->allocate(total, "KV pool");
  for (const KvLayer &layer : plan_.kv_layers) {
    memory_.keys.push_back(next);
    next += layer_bytes(layer, layer.head_dim);
    memory_.values.push_back(next);
    next += layer_bytes(layer, layer.v_head_dim);
  }
}

void ModelRunner::allocate_host_blocks(const KvCacheOptions &options) {
  if (options.host_bytes == 0)
    return;
  size_t block = plan_.kv_bytes_per_block();
  if (block == 0 || options.host_bytes < static_cast<int64_t>(block))
    fail(LLMC_INVALID_ARGUMENT,
         "host_memory_bytes must be 0 or hold a KV block (", block,
         " bytes), found ", options.host_bytes);
  size_t count = std::min<size_t>(
      static_cast<size_t>(options.host_bytes) / block, INT32_MAX);
  host_blocks_ =
      backend_->allocate_host(count * block, "KV blocks on the host");
  num_host_blocks_ = static_cast<int>(count);
}

void ModelRunner::copy_blocks(std::span<const BlockCopy> copies) {
  using enum BlockCopy::Kind;
  for (const auto &[kind, source, target] : copies) {
    size_t offset = 0; // in a host block
    auto copy = [&](uint64_t base, const KvLayer &layer, int head_dim) {
      size_t bytes = size_t(layer.heads) * size_t(plan_.block_size) *
                     size_t(head_dim) * info(layer.dtype).bytes;
      auto on_device = [&](BlockId block) {
        return base + static_cast<size_t>(block) * bytes;
      };
      auto on_host = [&](int32_t block) {
        return host_blocks_ +
               static_cast<size_t>(block) * plan_.kv_bytes_per_block() + offset;
      };
      if (kind == OnDevice)
        backend_->copy(Backend::CopyKind::OnDevice,
                       {on_device(target), on_device(source), bytes});
      else if (kind == ToHost)
        backend_->copy(Backend::CopyKind::ToHost,
                       {on_host(target), on_device(source), bytes});
      else
        backend_->copy(Backend::CopyKind::ToDevice,
                       {on_device(target), on_host(source), bytes});
      offset += bytes;
    };
    for (size_t i = 0; i < plan_.kv_layers.size(); ++i) {
      const KvLayer &layer = plan_.kv_layers[i];
      copy(memory_.keys[i], layer, layer.head_dim);
      copy(memory_.values[i], layer, layer.v_head_dim);
    }
  }
}

void ModelRunner::run(const Batch &batch, const KvCacheManager &kv_cache) {
  num_rows_ = static_cast<int>(batch.logit_rows.size());
  logits_ = nullptr;
  if (batch.num_tokens > limits_.max_num_tokens ||
      batch.size() > limits_.max_batch_size || num_rows_ > plan_.max_logit_rows)
    fail(LLMC_INTERNAL, "a step of ", batch.num_tokens, " tokens, ",
         batch.size(), " sequences and ", num_rows_,
         " logit rows exceeds the engine's limits");
  backend_->wait_for_staging();
  copy_blocks(batch.copies);
  input_writer_->write(batch, kv_cache);
  copy_pending_tokens(batch);
  if (kChecked)
    poison_new_blocks(batch, kv_cache);
  bool one_row_each =
      batch.num_tokens == batch.size() && num_rows_ == batch.size();
  if (int rows = one_row_each ? executor_->replay_rows(batch.size()) : 0) {
    input_writer_->pad(batch.size(), rows);
    executor_->replay(rows, {inputs_.used_bytes(rows), copies_});
  } else {
    executor_->run({.T = batch.num_tokens,
                    .S = batch.size(),
                    .R = num_rows_,
                    .NB = 0,
                    .B = 0},
                   {inputs_.used_bytes(batch.size()), copies_});
  }
  num_tokens_[batch.slot] = samples_on_device() ? num_rows_ : 0;
  backend_->start_fetch(batch.slot, executor_->next_tokens(),
                        static_cast<size_t>(num_tokens_[batch.slot]) *
                            sizeof(int32_t));
}

// A block whose first token is computed in this step holds nothing yet: what
// its last owner left must not look like an answer. The value is finite in
// every format, because kernels multiply what lies behind a sequence by zero.
void ModelRunner::poison_new_blocks(const Batch &batch,
                                    const KvCacheManager &kv_cache) {
  constexpr unsigned char kPoison = 0x7b;
  auto poison = [&](uint64_t base, const KvLayer &layer, int head_dim,
                    size_t block) {
    size_t bytes = size_t(layer.heads) * size_t(plan_.block_size) *
                   size_t(head_dim) * info(layer.dtype).bytes;
    backend_->fill(base + block * bytes, bytes, kPoison);
  };
  for (const BatchEntry &entry : batch.entries) {
    int begin = entry.sequence->num_computed_tokens;
    for (int position = begin; position < begin + entry.num_tokens; ++position)
      if (position % plan_.block_size == 0)
        for (size_t i = 0; i < plan_.kv_layers.size(); ++i) {
          const KvLayer &layer = plan_.kv_layers[i];
          auto block = static_cast<size_t>(
              kv_cache.slot(*entry.sequence, position) / plan_.block_size);
          poison(memory_.keys[i], layer, layer.head_dim, block);
          poison(memory_.values[i], layer, layer.v_head_dim, block);
        }
  }
}

// Tokens go from where the step before samples them to where this one reads
// them. Decodes keep their order from step to step, so it is one copy, and one
// more for each place where a sequence ended or joined.
void ModelRunner::copy_pending_tokens(const Batch &batch) {
  copies_.clear();
  const uint64_t tokens =
      memory_.step_block + inputs_.offset(StepInput::Tokens);
  uint64_t row = 0;
  for (const BatchEntry &entry : batch.entries) {
    row += static_cast<uint64_t>(entry.num_tokens);
    if (entry.pending_row < 0)
      continue;
    uint64_t target = tokens + (row - 1) * sizeof(int32_t);
    uint64_t source =
        executor_->next_tokens() +
        static_cast<uint64_t>(entry.pending_row) * sizeof(int32_t);
    if (!copies_.empty() &&
        target == copies_.back().target + copies_.back().bytes &&
        source == copies_.back().source + copies_.back().bytes)
      copies_.back().bytes += sizeof(int32_t);
    else
      copies_.push_back({target, source, sizeof(int32_t)});
  }
}

StepProfile ModelRunner::profile(int sequences, int tokens, int context,
                                 int repeats) {
  KvCacheManager kv_cache(num_blocks_, limits_.block_size);
  auto require = [](bool condition, const auto &...message) {
    if (!condition)
      fail(LLMC_INVALID_ARGUMENT, message...);
  };
  require(sequences >= 1 && tokens >= 1 && context >= tokens,
          "a step needs sequences, tokens >= 1 and context >= tokens, found ",
          sequences, ", ", tokens, " and ", context);
  require(int64_t{sequences} * tokens <= limits_.max_num_tokens &&
              sequences <= limits_.max_batch_size &&
              sequences <= plan_.max_logit_rows,
          "a step of ", sequences, " sequences with ", tokens,
          " tokens each exceeds the engine's limits: max_batch_size ",
          limits_.max_batch_size, ", max_num_tokens ", limits_.max_num_tokens);
  require(context <= limits_.max_seq_len, "a context of ", context,
          " tokens exceeds max_seq_len ", limits_.max_seq_len);
  int64_t blocks = int64_t{sequences} * kv_cache.blocks_for(context);
  require(blocks < num_blocks_, sequences, " sequences of ", context,
          " tokens need ", blocks, " KV blocks, the pool has ",
          num_blocks_ - 1);

  std::vector<Sequence> parts(static_cast<size_t>(sequences));
  Batch batch;
  for (Sequence &sequence : parts) {
    sequence.tokens.resize(static_cast<size_t>(context));
    for (int i = 0; i < context; ++i)
      sequence.tokens[static_cast<size_t>(i)] = i % vocab_size_;
    if (!kv_cache.allocate_slots(sequence, context))
      fail(LLMC_INTERNAL, "the KV pool has fewer blocks than it says");
    sequence.num_computed_tokens = context - tokens;
    batch.add(sequence, tokens);
    batch.want_logits(tokens - 1);
  }
  backend_->wait_for_staging();
  input_writer_->write(batch, kv_cache);
  return executor_->profile(
      {.T = batch.num_tokens, .S = sequences, .R = sequences, .NB = 0, .B = 0},
      inputs_.used_bytes(sequences), repeats);
}

std::span<const float> ModelRunner::logits(int row) {
  size_t width = static_cast<size_t>(vocab_size_);
  if (!logits_)
    logits_ = static_cast<const float *>(
        backend_->fetch(executor_->logits(), static_cast<size_t>(num_rows_) *
                                                 width * sizeof(float)));
  return {logits_ + static_cast<size_t>(row) * width, width};
}

std::span<const int32_t> ModelRunner::next_tokens(int slot) {
  if (num_tokens_[slot] == 0)
    return {};
  return {static_cast<const int32_t *>(backend_->finish_fetch(slot)),
          static_cast<size_t>(num_tokens_[slot])};
}

} // namespace llmc
