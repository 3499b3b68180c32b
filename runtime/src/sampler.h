#pragma once
// Chooses a token from a row of logits. This header is the definition; a device
// kernel implements the same one.
//
// Input: logits l[0..V) in float32, temperature t, top_k, top_p, min_p, seed
// (64 bits), sample_index (32 bits: the number of tokens the request has
// generated so far).
//
//  1. Greedy (t = 0): the lowest i among those with the largest l[i]. Nothing
//  below applies.
//  2. x[i] = l[i] * (1 / t), reciprocal and product in float32.
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
// candidates are closer than its rounding. The noise of a token depends on
// (seed, sample_index, i) only, so a request gets the same tokens in any batch.
//
// A NaN logit or a row without a finite maximum is an error of the model run,
// not a choice: sample() returns id -1.

#include "sampling_params.h"

#include <cstdint>
#include <span>
#include <vector>

namespace llmc {

struct SampledToken {
  int32_t id = -1;
  float logprob =
      0; // ln softmax(l)[id], of the raw logits; only when asked for
};

class Sampler {
public:
  // One object per thread: it keeps its working memory.
  SampledToken sample(std::span<const float> logits,
                      const SamplingParams &params, uint32_t sample_index);

private:
  double top_k_top_p_threshold(std::span<const float> x, float max,
                               const SamplingParams &params);
  std::vector<float> scaled_, sorted_;
};

float logprob_of(std::span<const float> logits, int32_t id);

// The noise g[i] of step 6, four tokens at a time: tokens 4 * chunk .. 4 *
// chunk + 3.
void gumbel4(uint64_t seed, uint32_t sample_index, uint32_t chunk,
             double out[4]);

} // namespace llmc
