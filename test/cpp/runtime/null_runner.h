#pragma once
// A model that computes nothing: its tokens are scripted, and in place of K and
// V it keeps a hash of all tokens up to each slot. Reading a step's blocks back
// shows at once when a block was lost, shared wrongly or not computed.

#include "error.h"
#include "sequence.h"
#include "step_runner.h"
#include "thread_pool.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <exception>
#include <utility>
#include <vector>

namespace llmc::test {

inline constexpr int kNullVocab = 1000;

inline uint64_t chain(uint64_t before, int32_t token) {
  uint64_t x = before * 0x9e3779b97f4a7c15 + static_cast<uint32_t>(token) + 1;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9;
  return x ^ (x >> 32);
}

inline uint64_t chain_start(uint64_t salt) { return salt * 31 + 7; }

inline int32_t scripted(uint64_t hash) {
  return static_cast<int32_t>((hash >> 20) % kNullVocab);
}

// The only right output for these tokens.
inline std::vector<int32_t> scripted_output(const std::vector<int32_t> &prompt,
                                            uint64_t salt, int count) {
  uint64_t hash = chain_start(salt);
  for (int32_t token : prompt)
    hash = chain(hash, token);
  std::vector<int32_t> output;
  for (int i = 0; i < count; ++i) {
    output.push_back(scripted(hash));
    hash = chain(hash, output.back());
  }
  return output;
}

// What a null runner does beside counting.
struct NullOptions {
  // Read every token of every sequence back in each step. Without it a step
  // costs as little as it can (for timing).
  bool verify = true;
  // Compute a step only when somebody waits for it or two more are behind it,
  // like a device: with overlap, tokens go from step to step here.
  bool late = false;
};

class NullRunner : public StepRunner {
public:
  NullRunner(int num_blocks, int block_size, const NullOptions &options = {})
      : slots_(static_cast<size_t>(num_blocks) *
               static_cast<size_t>(block_size)),
        block_size_(static_cast<size_t>(block_size)), options_(options) {}

  void run(const Batch &batch, const KvCacheManager &kv_cache) override {
    if (!options_.verify) {
      std::vector<int32_t> &next = results_[batch.slot].next;
      next.clear();
      for (const LogitRow &row : batch.logit_rows)
        next.push_back(row.row);
      return;
    }
    queue_.push_back(prepare(batch, kv_cache));
    while (queue_.size() > (options_.late ? 2 : 0))
      execute_first();
  }
  bool overlaps() const override { return options_.late; }
  std::span<const float> logits(int) override {
    fail(LLMC_INTERNAL, "the null runner has no logits");
  }
  void wait(int slot) override { next_tokens(slot); }
  std::span<const int32_t> next_tokens(int slot) override {
    auto is_queued = [&] {
      for (const Work &work : queue_)
        if (work.slot == slot)
          return true;
      return false;
    };
    while (is_queued())
      execute_first();
    if (results_[slot].error)
      std::rethrow_exception(results_[slot].error);
    return results_[slot].next;
  }
  bool samples_on_device() const override { return true; }
  ThreadPool &thread_pool() override { return pool_; }
  int64_t num_pending_tokens = 0; // taken from the step before
  int64_t num_copies[3] = {};     // of each kind

protected:
  bool fail_on_device_ = false; // the next step that is run

private:
  // A step as a device gets it: nothing of the host's is read later.
  struct Entry {
    std::vector<int32_t> tokens; // of the sequence up to the end of the step
    std::vector<int32_t> slots;  // of each
    int num_computed, pending_row;
    uint64_t salt;
  };
  struct Work {
    int slot;
    bool fails;
    std::vector<BlockCopy> copies;
    std::vector<Entry> entries;
    std::vector<int> rows; // entries whose next token is wanted
  };
  struct Result {
    std::vector<int32_t> next;
    std::exception_ptr error;
  };

  Work prepare(const Batch &batch, const KvCacheManager &kv_cache) {
    Work work{batch.slot,
              std::exchange(fail_on_device_, false),
              batch.copies,
              {},
              {}};
    for (const BatchEntry &entry : batch.entries) {
      const Sequence &sequence = *entry.sequence;
      int end = sequence.num_computed_tokens + entry.num_tokens;
      Entry &copy = work.entries.emplace_back();
      copy.tokens.assign(sequence.tokens.begin(),
                         sequence.tokens.begin() + end);
      for (int position = 0; position < end; ++position)
        copy.slots.push_back(kv_cache.slot(sequence, position));
      copy.num_computed = sequence.num_computed_tokens;
      copy.pending_row = entry.pending_row;
      copy.salt = sequence.cache_salt;
    }
    for (const LogitRow &row : batch.logit_rows)
      work.rows.push_back(row.entry);
    return work;
  }

  void execute_first() {
    Work work = std::move(queue_.front());
    queue_.pop_front();
    Result &result = results_[work.slot];
    result = {};
    try {
      if (work.fails)
        fail(LLMC_DEVICE_ERROR, "this step fails on the device on purpose");
      for (const BlockCopy &copy : work.copies)
        copy_block(copy);
      std::vector<uint64_t> hashes;
      for (Entry &entry : work.entries)
        hashes.push_back(compute(entry, results_[1 - work.slot].next));
      for (int entry : work.rows)
        result.next.push_back(scripted(hashes[static_cast<size_t>(entry)]));
    } catch (...) {
      result.error = std::current_exception();
    }
  }

  void copy_block(const BlockCopy &copy) {
    using enum BlockCopy::Kind;
    auto begin = [&](std::vector<uint64_t> &slots, int32_t block) {
      size_t first = static_cast<size_t>(block) * block_size_;
      slots.resize(std::max(slots.size(), first + block_size_));
      return slots.begin() + static_cast<ptrdiff_t>(first);
    };
    std::copy_n(
        begin(copy.kind == ToDevice ? host_slots_ : slots_, copy.source),
        block_size_,
        begin(copy.kind == ToHost ? host_slots_ : slots_, copy.target));
    ++num_copies[static_cast<size_t>(copy.kind)];
  }

  uint64_t compute(Entry &entry, const std::vector<int32_t> &before) {
    if (entry.pending_row >= 0) {
      entry.tokens.back() = before.at(static_cast<size_t>(entry.pending_row));
      ++num_pending_tokens;
    }
    uint64_t hash = chain_start(entry.salt);
    for (size_t position = 0; position < entry.tokens.size(); ++position) {
      hash = chain(hash, entry.tokens[position]);
      uint64_t &stored = slots_.at(static_cast<size_t>(entry.slots[position]));
      if (static_cast<int>(position) >= entry.num_computed)
        stored = hash;
      else if (stored != hash)
        fail(LLMC_INTERNAL, "position ", position, " of ", entry.tokens.size(),
             " holds other tokens than the sequence");
    }
    return hash;
  }

  std::vector<uint64_t> slots_, host_slots_;
  const size_t block_size_;
  std::deque<Work> queue_;
  Result results_[2];
  const NullOptions options_;
  ThreadPool pool_{1};
};

} // namespace llmc::test
