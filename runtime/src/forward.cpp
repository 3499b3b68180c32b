#include "forward.h"

#include "error.h"

#include <algorithm>

namespace llmc {

namespace {

struct Progress {
  Sequence sequence;
  std::span<const int32_t> rows;
  size_t next_row = 0; // first of rows not computed yet

  bool done() const { return sequence.num_uncomputed_tokens() == 0; }
};

// Gives the blocks back on every way out.
struct Release {
  std::vector<Progress> &all;
  KvCacheManager &kv_cache;
  ~Release() {
    for (Progress &one : all)
      kv_cache.free(one.sequence);
  }
};

// Adds the next chunk of a sequence: as many tokens as budget and row limit
// allow. False when not all of it fitted.
bool add_chunk(Progress &one, const ForwardLimits &limits,
               KvCacheManager &kv_cache, Batch &batch) {
  int start = one.sequence.num_computed_tokens;
  int count = std::min(one.sequence.num_uncomputed_tokens(),
                       limits.max_num_tokens - batch.num_tokens);
  size_t rows_left =
      static_cast<size_t>(limits.max_logit_rows) - batch.logit_rows.size();
  if (one.next_row + rows_left < one.rows.size())
    count = std::min(count, one.rows[one.next_row + rows_left] -
                                start); // stop before the first row too many
  if (count <= 0 || !kv_cache.allocate_slots(one.sequence, count))
    return false;
  batch.add(one.sequence, count);
  for (;
       one.next_row < one.rows.size() && one.rows[one.next_row] < start + count;
       ++one.next_row)
    batch.want_logits(one.rows[one.next_row] - start);
  return count == one.sequence.num_uncomputed_tokens();
}

} // namespace

void forward(std::span<const ForwardSequence> sequences,
             const ForwardLimits &limits, StepRunner &runner,
             KvCacheManager &kv_cache, float *logits) {
  std::vector<Progress> all(sequences.size());
  Release release{all, kv_cache};
  for (size_t i = 0; i < sequences.size(); ++i) {
    all[i].sequence.tokens.assign(sequences[i].tokens.begin(),
                                  sequences[i].tokens.end());
    all[i].sequence.num_prompt_tokens = all[i].sequence.num_tokens();
    all[i].rows = sequences[i].rows;
  }
  for (size_t first = 0; first < all.size();) {
    Batch batch;
    // A sequence starts only when the one before it ends in this step: at most
    // one holds blocks between steps.
    for (size_t i = first;
         i < all.size() && batch.size() < limits.max_batch_size; ++i)
      if (!add_chunk(all[i], limits, kv_cache, batch))
        break;
    if (batch.empty())
      fail(LLMC_INTERNAL,
           "scoring made no progress: ", kv_cache.pool().num_free(),
           " KV blocks free");
    kv_cache.take_copies(batch.copies); // what others wait for
    runner.run(batch, kv_cache);
    for (size_t row = 0; row < batch.logit_rows.size(); ++row) {
      std::span<const float> source = runner.logits(static_cast<int>(row));
      logits = std::copy(source.begin(), source.end(), logits);
    }
    for (const BatchEntry &entry : batch.entries)
      entry.sequence->num_computed_tokens += entry.num_tokens;
    while (first < all.size() && all[first].done()) {
      // Freed here and not at the end; done() must stay true, so only the
      // blocks go.
      Sequence finished = std::move(all[first].sequence);
      kv_cache.free(finished);
      all[first++].sequence = {};
    }
  }
}

} // namespace llmc
