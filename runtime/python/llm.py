"""The class that users of vLLM and TensorRT-LLM know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llmc.runtime.engine import Engine
from llmc.runtime.engine_parts import read_json_part
from llmc.runtime.outputs import CompletionDelta, RequestOutput
from llmc.runtime.sampling_params import SamplingParams

Message = Mapping[str, Any]
Conversation = Sequence[Message]

_GENERATION_CONFIG = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "no_repeat_ngram_size")


class LLM(Engine):
    """An engine with chat. ``LLM("ENGINE").generate(["..."], SamplingParams(max_tokens=64))``."""

    def chat(
        self,
        messages: Conversation | Sequence[Conversation],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> list[RequestOutput]:
        """Answers one conversation or several; a message is {"role": ..., "content": ...}."""
        conversations = [messages] if messages and isinstance(messages[0], Mapping) else messages
        prompts = [self._chat_prompt(one, tools, chat_template_kwargs) for one in conversations]  # type: ignore[arg-type]
        return self.generate(prompts, sampling_params)

    def chat_stream(
        self,
        messages: Conversation,
        sampling_params: SamplingParams | None = None,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> Iterator[CompletionDelta]:
        return self.generate_stream(self._chat_prompt(messages, tools, chat_template_kwargs), sampling_params)

    def get_default_sampling_params(self) -> SamplingParams:
        """What the model's generation_config.json recommends."""
        config = read_json_part(self.path, "tokenizer/generation_config.json")
        values = {name: config[name] for name in _GENERATION_CONFIG if config.get(name) is not None}
        if config.get("do_sample") is False:
            values["temperature"] = 0.0
        return SamplingParams(**values)

    def _chat_prompt(
        self,
        messages: Conversation,
        tools: Sequence[Mapping[str, Any]] | None,
        variables: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        text = self.tokenizer.apply_chat_template(messages, tools=tools, **(variables or {}))
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        return {"prompt": text, "prompt_token_ids": ids}
