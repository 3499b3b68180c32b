#pragma once
// What one step computes: some next tokens of some sequences, and the rows
// whose logits are wanted.

#include "block_copy.h"
#include "sampling_params.h"
#include "sequence.h"

#include <cstdint>
#include <vector>

namespace llmc {

class LogitRules;
struct Request;

struct BatchEntry {
  Sequence *sequence;
  int num_tokens;   // computed in this step, from sequence->num_computed_tokens
                    // on
  Request *request; // null for teacher-forced scoring
  // The logit row of the step before that samples this entry's only token: it
  // is on the device and nowhere else yet. -1: the sequence has it.
  int pending_row = -1;
};

struct LogitRow {
  int row;                      // among the tokens of the step
  int entry;                    // whose token it is
  const SamplingParams *params; // null: nothing is sampled from it
  uint32_t sample_index;
  const LogitRules *rules; // null: none
  int prompt_position;     // of the token whose row it is, for the logprob of
                           // the one after it; -1: not for that
};

struct Batch {
  std::vector<BatchEntry> entries;
  std::vector<LogitRow> logit_rows;
  std::vector<BlockCopy> copies; // before its launches, in order
  int num_tokens = 0;
  int slot = 0;            // 0 or 1: where the step's output goes
  bool needs_host = false; // see needs_host() of sampling parameters

  bool empty() const { return entries.empty(); }
  void clear() {
    entries.clear();
    logit_rows.clear();
    copies.clear();
    num_tokens = 0;
    needs_host = false;
  }
  int size() const { return static_cast<int>(entries.size()); }
  void add(Sequence &sequence, int count, Request *request = nullptr) {
    entries.push_back({&sequence, count, request, -1});
    num_tokens += count;
  }
  // Logits after token `offset` of the entry added last.
  void want_logits(int offset, const SamplingParams *params = nullptr,
                   uint32_t sample_index = 0,
                   const LogitRules *rules = nullptr) {
    logit_rows.push_back({num_tokens - entries.back().num_tokens + offset,
                          size() - 1, params, sample_index, rules, -1});
  }
  // The same for a token of the prompt at `position`.
  void want_prompt_logprob(int offset, int position) {
    want_logits(offset);
    logit_rows.back().prompt_position = position;
  }
};

} // namespace llmc
