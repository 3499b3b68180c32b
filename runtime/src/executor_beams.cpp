// What the beams of a search offer, and how it ends.
#include "error.h"
#include "executor.h"

#include <algorithm>

namespace llmc {

// A row of a beam is computed. When all beams of its search have theirs, the
// search takes a step. A beam that was preempted meanwhile computes its row
// again: the same one.
void Executor::take_offer(Request &beam, RowSampler::Outcome &outcome) {
  const std::shared_ptr<BeamGroup> group = beam.group;
  beam.sequence.tokens.pop_back(); // it was pending, and which one is open
  --beam.sequence.num_pending_tokens;
  if (outcome.error) {
    for_each_member(beam, [&](Request &member) {
      failed_.emplace_back(member.stream.get(), *outcome.error);
    });
    scheduler_.finish(beam);
    return;
  }
  size_t index = 0;
  while (group->members[index].get() != &beam)
    ++index;
  std::swap(group->offers[index], outcome.offer);
  group->has_offer[index] = 1;
  const auto num_beams = static_cast<ptrdiff_t>(group->num_beams);
  if (std::count(group->has_offer.begin(), group->has_offer.begin() + num_beams,
                 1) < num_beams)
    return;
  auto choices =
      group->search.step(std::span(group->offers).first(group->num_beams));
  counters_.num_generated_tokens += static_cast<int64_t>(group->num_beams);
  monitor_.has_token(*group->members.front());
  if (choices.empty())
    end_search(group);
  else
    scheduler_.continue_beams(*group, choices);
}

void Executor::end_search(const std::shared_ptr<BeamGroup> &group) {
  std::vector<BeamSearch::Answer> answers = group->search.answers();
  for (size_t i = 0; i < group->members.size(); ++i) {
    RequestStream *stream = group->members[i]->stream.get();
    if (answers.empty()) {
      failed_.emplace_back(stream, nothing_allowed());
      continue;
    }
    if (i >= answers.size()) {
      emissions_.push_back({stream, {}, LLMC_FINISH_STOP});
      continue;
    }
    BeamSearch::Answer &answer = answers[i];
    const llmc_finish end =
        answer.stopped ? LLMC_FINISH_STOP : LLMC_FINISH_LENGTH;
    for (size_t t = 0; t < answer.tokens.size(); ++t)
      emissions_.push_back({stream, std::move(answer.tokens[t]),
                            t + 1 < answer.tokens.size() ? LLMC_RUNNING : end});
  }
  scheduler_.finish(*group->members.front());
}

} // namespace llmc
