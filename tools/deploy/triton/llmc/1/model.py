"""An engine behind Triton Inference Server's Python backend: requests go into its batch while others run.

Streams when `stream` is true, else sends one answer. A request that Triton cancels is cancelled in the engine.
"""

import asyncio
import contextlib
import json
import threading

import numpy as np
import triton_python_backend_utils as pb_utils

from llmc.runtime import LLM, SamplingParams
from llmc.runtime.async_engine import AsyncEngine

# Name of an input -> name in SamplingParams.
SAMPLING = ("max_tokens", "temperature", "top_p", "top_k", "seed")


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        device = int(args.get("model_instance_device_id") or 0)
        self.llm = LLM(parameters["engine"]["string_value"], device=device)
        self.engine = AsyncEngine(self.llm)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="llmc-requests")
        self.thread.start()

    def execute(self, requests):
        """Starts them and returns at once: that is what a decoupled model does."""
        for request in requests:
            asyncio.run_coroutine_threadsafe(self._answer(request, request.get_response_sender()), self.loop)

    def finalize(self):
        self.engine.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.llm.close()

    async def _answer(self, request, sender):
        last = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
        try:
            prompt, params = self._asked(request)
            stream = bool(_value(request, "stream"))
            text, tokens = "", 0  # not sent yet
            async with contextlib.aclosing(self.engine.generate(prompt, params)) as all_news:
                async for news in all_news:
                    if request.is_cancelled():
                        sender.send(_failed("the request was cancelled", pb_utils.TritonError.CANCELLED), flags=last)
                        return
                    text, tokens = text + news.text, tokens + len(news.token_ids)
                    if news.finish_reason is not None:
                        sender.send(_response(text, news.finish_reason, tokens), flags=last)
                    elif stream and text:
                        sender.send(_response(text, "", tokens))
                        text, tokens = "", 0
        except Exception as error:  # a request that cannot be answered must not end the model
            sender.send(_failed(str(error), pb_utils.TritonError.INVALID_ARG), flags=last)

    def _asked(self, request):
        text = _value(request, "text_input")
        values = {name: value for name in SAMPLING if (value := _value(request, name)) is not None}
        stop = pb_utils.get_input_tensor_by_name(request, "stop_words")
        if stop is not None:
            values["stop"] = [word.decode() for word in stop.as_numpy().reshape(-1)]
        if _value(request, "chat"):
            template = self.llm.tokenizer.apply_chat_template
            text = template([{"role": "user", "content": text}], add_generation_prompt=True)
            ids = self.llm.tokenizer.encode(text, add_special_tokens=False)
            return {"prompt_token_ids": ids}, SamplingParams(**values)
        return text, SamplingParams(**values)


def _value(request, name):
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    if tensor is None:
        return None
    value = tensor.as_numpy().reshape(-1)[0]
    return value.decode() if isinstance(value, bytes) else value.item()


def _response(text, finish_reason, tokens):
    return pb_utils.InferenceResponse(
        [
            pb_utils.Tensor("text_output", np.array([text.encode()], dtype=np.object_)),
            pb_utils.Tensor("finish_reason", np.array([finish_reason.encode()], dtype=np.object_)),
            pb_utils.Tensor("output_tokens", np.array([tokens], dtype=np.int32)),
        ]
    )


def _failed(message, code):
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(message, code))
