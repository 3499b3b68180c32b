"""The n answers to one prompt on the Python side; with best_of or beams, the best n of more."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from llmc.runtime import _runtime
from llmc.runtime.outputs import CompletionDelta, CompletionOutput, RequestOutput
from llmc.runtime.request_state import RequestState
from llmc.runtime.sampling_params import SamplingParams


def copies(params: SamplingParams) -> list[SamplingParams]:
    """Parameters of each answer: seeds that follow each other, log probabilities where answers are compared."""
    one = dataclasses.replace(params, n=1, best_of=None)
    if params.beam_width > 1:  # one search
        return [one] * params.beam_width
    if params.num_sequences > params.n and params.logprobs is None:
        one = dataclasses.replace(one, logprobs=0)
    if params.seed is None:
        return [one] * params.num_sequences
    return [dataclasses.replace(one, seed=(params.seed + i) % 2**64) for i in range(params.num_sequences)]


class RequestGroup:
    """`states` has params.num_sequences requests for one prompt."""

    def __init__(self, states: Sequence[RequestState], params: SamplingParams) -> None:
        self.states = states
        self._params = params
        first = states[0].output
        # With best_of or beams nobody sees anything before all answers have ended.
        self._compares = params.num_sequences > params.n or params.beam_width > 1
        self.output = RequestOutput(first.request_id, first.prompt, first.prompt_token_ids)
        if not self._compares:
            self.output.outputs = [state.completion for state in states]
        for index, state in enumerate(states):
            state.completion.index = index

    @property
    def finished(self) -> bool:
        return all(state.finished for state in self.states)

    def cancel(self) -> None:
        for state in self.states:
            state.request.cancel()

    def update(self, choice: int, event: _runtime.Event) -> list[CompletionDelta]:
        """Takes an event of the mailbox for one of the states. Raises what went wrong with it."""
        state = self.states[choice]
        if state.finished:  # tokens that came after a stop string
            return []
        delta = state.update(event)
        self._take_from_first()
        if not self._compares:
            delta.index = choice
            if choice > 0:  # the prompt is counted once
                delta.num_cached_tokens = 0
            return [delta]
        return self._choose() if self.finished else []

    def _take_from_first(self) -> None:
        first = self.states[0].output
        self.output.prompt_logprobs = first.prompt_logprobs
        self.output.prompt_top_logprobs = first.prompt_top_logprobs
        self.output.num_cached_tokens = first.num_cached_tokens
        self.output.finished = self.finished

    def _choose(self) -> list[CompletionDelta]:
        if self._params.beam_width > 1:  # in order; there may be fewer
            best = [state for state in self.states if state.completion.token_ids][: self._params.n]
        else:
            best = sorted(self.states, key=lambda one: _mean_logprob(one.completion), reverse=True)[: self._params.n]
        deltas = []
        for index, state in enumerate(best):
            answer = state.completion
            answer.index = index
            if self._params.logprobs is None:
                answer.logprobs = answer.cumulative_logprob = None
            self.output.outputs.append(answer)
            deltas.append(
                CompletionDelta(
                    answer.text,
                    answer.token_ids,
                    answer.logprobs,
                    answer.top_logprobs,
                    answer.finish_reason,
                    answer.stop_reason,
                    state.output.prompt_logprobs,
                    state.output.prompt_top_logprobs,
                    self.output.num_cached_tokens if index == 0 else 0,
                    index,
                )
            )
        return deltas


def _mean_logprob(completion: CompletionOutput) -> float:
    """Of a token; an answer without tokens is the worst."""
    if not completion.token_ids or completion.cumulative_logprob is None:
        return float("-inf")
    return completion.cumulative_logprob / len(completion.token_ids)
