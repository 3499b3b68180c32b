#pragma once
// Chooses a token from a row of logits. This header is the definition; a device
// kernel implements the same one.
//
// Input: logits l[0..V) in float32, the request's rules, temperature t, top_k,
// top_p, min_p, seed (64 bits), sample_index (32 bits: the number of tokens the
// request has generated so far).
//
//  0. z[i] = what the rules of logit_rules.h make of l[i], in float32, and then
//  the request's logits_processor, if it has one, of all of z.
//  1. Greedy (t = 0): the lowest i among those with the largest z[i]. Nothing
//  below applies.
//  2. x[i] = z[i] * (1 / t), reciprocal and product in float32.
//  3. top_k (k > 0): keep i when x[i] >= the k-th largest x, counted with
//  multiplicity. Ties with the k-th are all kept.
//  4. top_p (p < 1), over what step 3 kept: with q = softmax(x) renormalised
//  over the kept set, let v be the largest
//     value for which the sum of q over {kept, x >= v} is at least p. Keep i
//     when x[i] >= v. Ties with v are all kept, the largest always is.
//  5. min_p (m > 0): keep i when x[i] - max(x) >= ln(m), that is, when its
//  probability is at least m times the largest.
//  6. Gumbel-max over what is kept: the i with the largest x[i] + g[i], the
//  lowest i among equals, where
//       g[i] = -ln(-ln(1 - u)), u = (w + 0.5) * 2^-32,
//       w    = word i % 4 of philox4x32(counter = {i / 4, sample_index, 0, 0},
//       key = {low, high half of seed}).
//
// Steps 3 to 6 are defined over real numbers; this implementation evaluates
// them in float64, a device may use float32 and may then differ where two
// candidates are closer than its rounding (and may round once where step 0
// multiplies and subtracts). The noise of a token depends on (seed,
// sample_index, i) only, so a request gets the same tokens in any batch.
//
// No token: a NaN among l or a largest l that is not finite is an error of the
// model run (kBadLogits). A largest z of minus infinity means that the rules
// left nothing (kNothingAllowed), a NaN among z or a largest z of infinity that
// the logits_processor wrote it (kBadProcessor).

#include "beam_search.h"
#include "logit_rules.h"
#include "sampling_params.h"

#include <cstdint>
#include <span>
#include <vector>

namespace llmc {

inline constexpr int32_t kBadLogits = -1, kNothingAllowed = -2,
                         kBadProcessor = -3;

// The request's tokens, for its logits_processor.
struct History {
  std::span<const int32_t> tokens; // prompt and output
  size_t num_prompt_tokens = 0;
};

class Sampler {
public:
  // One object per thread: it keeps its working memory. Returns a token id, or
  // one of the negative codes above. Throws when the logits_processor says that
  // it failed.
  int32_t sample(std::span<const float> logits, const SamplingParams &params,
                 uint32_t sample_index, const RowRules &rules = {},
                 const History &history = {});

  // For beam search, in place of a token: ln softmax(l) takes the place of l in
  // step 0, and the `count` tokens with the largest z are offered, short of
  // those with minus infinity; the lower id first among equals. Returns 0 or
  // one of the negative codes above.
  int32_t offer(std::span<const float> logits, const RowRules &rules, int count,
                BeamOffer &out);

private:
  void apply(const RowRules &rules);
  double top_k_top_p_threshold(std::span<const float> x, float max,
                               const SamplingParams &params);
  int32_t draw(std::span<const float> logits, int32_t largest,
               const SamplingParams &params, uint32_t sample_index);
  std::vector<float> adjusted_, scaled_, sorted_;
  std::vector<int32_t> order_;
};

// The noise g[i] of step 6, four tokens at a time: tokens 4 * chunk .. 4 *
// chunk + 3.
void gumbel4(uint64_t seed, uint32_t sample_index, uint32_t chunk,
             double out[4]);

} // namespace llmc
