#pragma once
// The rules of one request that change logits before a token is drawn, and what
// they come to for its next token: step 0 of sampler.h.
//
// With h = prompt and output so far, o = output so far, and l[i] the logit of
// token i, all in float32:
//
//   z = l[i] + logit_bias[i]
//   z = z > 0 ? z / repetition_penalty : z * repetition_penalty, when i is in h
//   z = z - (presence_penalty + frequency_penalty * count of i in o), when i is
//       in o
//   z = -infinity, when i may not come next:
//
//   * allowed_token_ids is not empty and does not hold i
//   * o has fewer than min_tokens tokens and i is an eos or a stop token
//   * a bad word is the end of (o, i)
//   * the last no_repeat_ngram_size tokens of (h, i) came before in h
//   * the mask that the callback token_mask wrote for h has no bit for i
//
// Most tokens keep their logit, so the outcome is a list of adjustments, one
// for each other token, and at most one bit mask. Host and device apply both in
// the same way.

#include "repeated_ngrams.h"
#include "sampling_params.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace llmc {

// z = l + bias; z = z > 0 ? z / scale : z * scale; z - penalty. As kernels read
// it.
struct Adjustment {
  int32_t token;
  float bias;
  float scale;
  float penalty; // infinity: the token cannot come

  float apply(float logit) const {
    float z = logit + bias;
    z = z > 0 ? z / scale : z * scale;
    return z - penalty;
  }
};
static_assert(sizeof(Adjustment) == 16);

// The outcome for one row of logits.
struct RowRules {
  std::span<const Adjustment> adjustments; // each token once
  std::span<const uint32_t> mask; // bit t % 32 of word t / 32; empty: all may

  size_t num_words() const { return 4 * adjustments.size() + mask.size(); }
};

class LogitRules {
public:
  // `params` outlives this. `eos_token_ids`: what min_tokens holds back beside
  // the stop tokens.
  LogitRules(const SamplingParams &params,
             std::span<const int32_t> eos_token_ids, int vocab_size);

  // Brings row() up to `tokens`, prompt and output so far. Tokens of earlier
  // calls are not looked at again. Throws what a callback's failure means.
  void prepare(std::span<const int32_t> tokens, size_t num_prompt_tokens);

  const RowRules &row() const { return row_; }

private:
  size_t entry_of(int32_t token); // made when there is none yet
  void count(int32_t token, bool is_output);
  void update(size_t entry);
  void forbid(int32_t token); // for the next token only
  void forget_forbidden();
  void run_token_mask(std::span<const int32_t> tokens,
                      size_t num_prompt_tokens);

  const SamplingParams &params_;
  std::vector<int32_t> enders_; // what min_tokens holds back
  size_t num_words_;
  size_t num_seen_ = 0;
  RepeatedNgrams ngrams_;

  // One entry for each token that is not as the model left it.
  std::vector<Adjustment> adjustments_;
  std::vector<int> counts_; // in the output
  std::unordered_map<int32_t, size_t> entries_;
  std::vector<size_t> forbidden_; // entries
  size_t num_lasting_ = 0; // entries behind these are there for forbid() only

  std::vector<uint32_t> allowed_, mask_;
  RowRules row_;
};

} // namespace llmc
