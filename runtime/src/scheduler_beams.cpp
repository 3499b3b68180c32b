// How the beams of a search go on: sequences move to new beams, or are forked.
#include "scheduler.h"

#include <algorithm>
#include <utility>

namespace llmc {

void Scheduler::continue_beams(BeamGroup &group,
                               std::span<const BeamSearch::Choice> choices) {
  struct Before {
    Sequence sequence;
    std::unique_ptr<LogitRules> rules;
    Request *heir = nullptr; // the first beam that goes on with it
  };
  std::vector<Before> before(group.num_beams);
  for (size_t i = 0; i < before.size(); ++i) {
    before[i].sequence = std::move(group.members[i]->sequence);
    before[i].rules = std::move(group.members[i]->rules);
    group.members[i]->sequence = {};
  }
  // Moved and freed before anything is forked: in no moment are there more
  // blocks than beams may have.
  for (size_t i = 0; i < choices.size(); ++i) {
    Before &parent = before[static_cast<size_t>(choices[i].parent)];
    if (parent.heir)
      continue;
    parent.heir = group.members[i].get();
    parent.heir->sequence = std::move(parent.sequence);
    parent.heir->rules = std::move(parent.rules);
  }
  for (Before &parent : before)
    if (!parent.heir)
      kv_cache_.free(parent.sequence);
  bool all_fit = true;
  for (size_t i = 0; i < choices.size(); ++i) {
    Request &beam = *group.members[i];
    const Request &heir = *before[static_cast<size_t>(choices[i].parent)].heir;
    if (&heir == &beam)
      continue;
    all_fit &= kv_cache_.fork(heir.sequence, beam.sequence);
    if (heir.rules)
      beam.rules = std::make_unique<LogitRules>(*heir.rules);
  }
  for (size_t i = 0; i < choices.size(); ++i)
    group.members[i]->sequence.tokens.push_back(choices[i].token);

  for (size_t i = choices.size(); i < group.num_beams; ++i) {
    group.members[i]->state = Request::State::Waiting;
    std::erase(running_, group.members[i]);
  }
  for (size_t i = group.num_beams; i < choices.size(); ++i) {
    group.members[i]->state = Request::State::Running;
    auto place = std::upper_bound(
        running_.begin(), running_.end(), group.members[i],
        [](const auto &a, const auto &b) { return a->goes_before(*b); });
    running_.insert(place, group.members[i]);
  }
  kept_seats_ +=
      static_cast<int>(group.num_beams) - static_cast<int>(choices.size());
  group.num_beams = choices.size();
  std::ranges::fill(group.has_offer, uint8_t{0});
  if (!all_fit)
    preempt(*group.members.front());
}

} // namespace llmc
