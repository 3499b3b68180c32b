"""One running request on the Python side: ids to text, stop strings, the final output."""

from __future__ import annotations

from collections.abc import Sequence

from llmc.runtime import _runtime
from llmc.runtime.outputs import CompletionDelta, CompletionOutput, FinishReason, RequestOutput
from llmc.runtime.sampling_options import Guarded
from llmc.runtime.sampling_params import SamplingParams
from llmc.runtime.stop_strings import StopStringMatcher
from llmc.runtime.tokenizer import Tokenizer

_REASONS: dict[int, FinishReason] = {
    _runtime.FINISH_STOP: "stop",
    _runtime.FINISH_LENGTH: "length",
    _runtime.FINISH_CANCELLED: "abort",
    _runtime.FINISH_DEADLINE: "timeout",
}


class RequestState:
    def __init__(
        self,
        request: _runtime.Request,
        request_id: str,
        prompt: str | None,
        prompt_token_ids: list[int],
        params: SamplingParams,
        tokenizer: Tokenizer | None,
        guards: Sequence[Guarded] = (),
    ) -> None:
        self.request = request
        self._guards = guards
        self.params = params
        self._detokenizer = tokenizer.detokenizer(params.skip_special_tokens) if tokenizer else None
        self._stops = StopStringMatcher(params.stop_strings, params.include_stop_str_in_output)
        self.completion = CompletionOutput(0, "", [])
        if params.logprobs is not None:
            self.completion.logprobs = []
            self.completion.cumulative_logprob = 0.0
            if params.logprobs > 0:
                self.completion.top_logprobs = []
        self.output = RequestOutput(request_id, prompt, prompt_token_ids, [self.completion])

    @property
    def finished(self) -> bool:
        return self.output.finished

    def update(self, event: _runtime.Event) -> CompletionDelta:
        """Takes an event of the mailbox; cancels the request when a stop string has come."""
        ids, logprobs, top_logprobs, finish = event
        if finish == _runtime.FINISH_ERROR:
            self.output.finished = True
            self._raise()
        wanted = self.params.logprobs
        delta = CompletionDelta("", [], None if wanted is None else [], [] if wanted else None)
        if self.params.prompt_logprobs is not None and self.output.prompt_logprobs is None and ids:
            self._take_prompt_logprobs()
            delta.prompt_logprobs = self.output.prompt_logprobs
            delta.prompt_top_logprobs = self.output.prompt_top_logprobs
        for i, id in enumerate(ids):
            delta.token_ids.append(id)
            if delta.logprobs is not None:
                delta.logprobs.append(logprobs[i])
            if delta.top_logprobs is not None:
                delta.top_logprobs.append(top_logprobs[i])
            if self._detokenizer:
                text = self._detokenizer.push(id)
                early = len(self.completion.token_ids) + len(delta.token_ids) < self.params.min_tokens
                delta.text += text if early else self._stops.push(text)
            if self._stops.matched is not None:
                break
        if self._stops.matched is None and finish != _runtime.FINISH_RUNNING and self._detokenizer:
            delta.text += self._stops.push(self._detokenizer.finish())
            if self._stops.matched is None:
                delta.text += self._stops.finish()
        self._finish(delta, finish)
        self._append(delta)
        return delta

    def _raise(self) -> None:
        error = next((guard.error for guard in self._guards if guard.error is not None), None)
        try:
            self.request.raise_error()
        except Exception as failure:
            if error is None:
                raise
            failure.args = (f"{failure}: {type(error).__name__}: {error}",)
            raise failure from error

    def _take_prompt_logprobs(self) -> None:
        found = self.request.prompt_logprobs()
        self.output.prompt_logprobs = [None, *(logprob for logprob, _ in found[1:])]
        if self.params.prompt_logprobs:
            self.output.prompt_top_logprobs = [None, *(largest for _, largest in found[1:])]

    def _finish(self, delta: CompletionDelta, finish: int) -> None:
        if self._stops.matched is not None:
            self.request.cancel()
            delta.finish_reason, delta.stop_reason = "stop", self._stops.matched
        elif finish != _runtime.FINISH_RUNNING:
            delta.finish_reason = _REASONS[finish]
            if delta.finish_reason == "stop" and delta.token_ids and delta.token_ids[-1] in self.params.stop_token_ids:
                delta.stop_reason = delta.token_ids[-1]
        self.output.finished = delta.finish_reason is not None
        if self.output.finished:  # -1: it never started
            self.output.num_cached_tokens = delta.num_cached_tokens = max(self.request.reused_tokens, 0)

    def _append(self, delta: CompletionDelta) -> None:
        completion = self.completion
        completion.text += delta.text
        completion.token_ids += delta.token_ids
        if completion.logprobs is not None and delta.logprobs is not None:
            completion.logprobs += delta.logprobs
            completion.cumulative_logprob = sum(completion.logprobs)
        if completion.top_logprobs is not None and delta.top_logprobs is not None:
            completion.top_logprobs += delta.top_logprobs
        completion.finish_reason = delta.finish_reason
        completion.stop_reason = delta.stop_reason
