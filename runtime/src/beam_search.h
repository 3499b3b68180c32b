#pragma once
// Beam search: which continuations of one prompt are followed, and which
// answers are kept. Pure arithmetic on log probabilities; who computes them and
// what lies in the KV cache is the scheduler's.
//
// The algorithm is that of transformers' GenerationMixin with num_beams, so
// that both give the same answers. In each step every beam offers its likeliest
// continuations; all offers together are ordered by the sum of log
// probabilities of their tokens. Of the first `width`, those that end (stop
// token, or the last token that there is room for) are answers; of all, the
// first `width` that do not end are the beams of the next step. An answer's
// score is its sum divided by its length to the power of length_penalty; the
// best `width` are kept. The search ends when there are `width` answers and,
// with early stopping, at once; without, when no beam can do better than the
// worst of them: at the present length, or with EarlyStopping::Never at the
// length that is best for it.

#include "logprobs.h"

#include <cstdint>
#include <span>
#include <vector>

namespace llmc {

inline constexpr int kMaxBeamWidth = 64;

enum class EarlyStopping { No = 0, Yes = 1, Never = 2 };

struct BeamOptions {
  int width = 1;
  float length_penalty = 1.0f;
  EarlyStopping early_stopping = EarlyStopping::No;
};

// What a beam could go on with.
struct BeamOffer {
  struct Candidate {
    int32_t token;
    float score;   // its log probability after the request's rules
    float logprob; // under the raw model
  };
  std::vector<Candidate> candidates; // the best num_candidates(), descending
  std::vector<llmc_logprob> top;     // largest of the raw model, when asked for
};

class BeamSearch {
public:
  // stop_ids: tokens that end an answer, each once. max_tokens: most tokens of
  // one.
  BeamSearch(const BeamOptions &options, std::vector<int32_t> stop_ids,
             int max_tokens);

  // How many continuations a beam must offer (or all that it has), so that
  // enough are left when some of them end.
  int num_candidates() const;

  // A beam of the next step: beam `parent` of this one and a token more.
  struct Choice {
    int parent;
    int32_t token;
  };
  // offers: one for each beam; at first there is one beam. At most `width`
  // choices; none: the search has ended. Valid until the next call.
  std::span<const Choice> step(std::span<const BeamOffer> offers);

  struct Answer {
    std::vector<OutputToken> tokens;
    double score;
    bool stopped; // by a stop token, which is its last one
  };
  std::vector<Answer> answers() const; // best first; at most `width`

private:
  struct Node {     // a token of some beams; the tree of all that were followed
    int32_t parent; // -1: the prompt
    OutputToken token;
  };
  struct Beam {
    double score;
    int32_t node; // its last token; -1: the prompt
  };
  struct Ended {
    double score;
    int32_t node;
    bool stopped;
  };

  int32_t add_node(int beam, const BeamOffer &offer,
                   const BeamOffer::Candidate &candidate);
  double penalised(double score, int length) const;
  bool can_improve() const;

  const BeamOptions options_;
  const std::vector<int32_t> stop_ids_;
  const int max_tokens_;
  int length_ = 0; // tokens of each beam
  std::vector<Beam> beams_{{0, -1}};
  std::vector<Ended> ended_; // best first
  std::vector<Node> nodes_;
  std::vector<Choice> choices_;
};

} // namespace llmc
