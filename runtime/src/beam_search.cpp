#include "beam_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace llmc {

BeamSearch::BeamSearch(const BeamOptions &options,
                       std::vector<int32_t> stop_ids, int max_tokens)
    : options_(options), stop_ids_(std::move(stop_ids)),
      max_tokens_(max_tokens) {}

int BeamSearch::num_candidates() const {
  return options_.width * std::max(2, 1 + static_cast<int>(stop_ids_.size()));
}

std::span<const BeamSearch::Choice>
BeamSearch::step(std::span<const BeamOffer> offers) {
  struct Continuation {
    double score;
    int beam;
    const BeamOffer::Candidate *candidate;
  };
  std::vector<Continuation> all;
  for (size_t beam = 0; beam < offers.size(); ++beam)
    for (const BeamOffer::Candidate &one : offers[beam].candidates)
      all.push_back({beams_[beam].score + double{one.score},
                     static_cast<int>(beam), &one});
  std::stable_sort(all.begin(), all.end(), [](const auto &a, const auto &b) {
    return a.score > b.score;
  });
  all.resize(std::min(all.size(), static_cast<size_t>(num_candidates())));

  ++length_;
  const auto width = static_cast<size_t>(options_.width);
  std::vector<Beam> next;
  choices_.clear();
  for (size_t rank = 0; rank < all.size(); ++rank) {
    auto [score, beam, candidate] = all[rank];
    const BeamOffer &offer = offers[static_cast<size_t>(beam)];
    const bool stops = std::ranges::count(stop_ids_, candidate->token) > 0;
    if (stops || length_ == max_tokens_) {
      if (rank < width)
        ended_.push_back({penalised(score, length_),
                          add_node(beam, offer, *candidate), stops});
    } else if (next.size() < width) {
      next.push_back({score, add_node(beam, offer, *candidate)});
      choices_.push_back({beam, candidate->token});
    }
  }
  std::stable_sort(
      ended_.begin(), ended_.end(),
      [](const auto &a, const auto &b) { return a.score > b.score; });
  ended_.resize(std::min(ended_.size(), width));
  beams_ = std::move(next);
  if (!can_improve())
    choices_.clear();
  return choices_;
}

bool BeamSearch::can_improve() const {
  if (beams_.empty())
    return false;
  if (ended_.size() < static_cast<size_t>(options_.width))
    return true;
  if (options_.early_stopping == EarlyStopping::Yes)
    return false;
  const bool by_longest = options_.early_stopping == EarlyStopping::Never &&
                          options_.length_penalty > 0;
  return penalised(beams_.front().score, by_longest ? max_tokens_ : length_) >
         ended_.back().score;
}

double BeamSearch::penalised(double score, int length) const {
  return score /
         std::pow(static_cast<double>(length), double{options_.length_penalty});
}

int32_t BeamSearch::add_node(int beam, const BeamOffer &offer,
                             const BeamOffer::Candidate &candidate) {
  nodes_.push_back({beams_[static_cast<size_t>(beam)].node,
                    {candidate.token, {candidate.logprob, offer.top}}});
  return static_cast<int32_t>(nodes_.size()) - 1;
}

std::vector<BeamSearch::Answer> BeamSearch::answers() const {
  std::vector<Answer> answers;
  for (const Ended &one : ended_) {
    Answer &answer = answers.emplace_back();
    answer.score = one.score;
    answer.stopped = one.stopped;
    for (int32_t at = one.node; at >= 0;
         at = nodes_[static_cast<size_t>(at)].parent)
      answer.tokens.push_back(nodes_[static_cast<size_t>(at)].token);
    std::ranges::reverse(answer.tokens);
  }
  return answers;
}

} // namespace llmc
