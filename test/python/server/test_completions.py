"""The answers that OpenAI's client gets are those of LLM.generate and LLM.chat."""

from __future__ import annotations

import re

import pytest

from llmc.runtime import SamplingParams

GREEDY = {"temperature": 0, "extra_body": {"ignore_eos": True}}
MESSAGES = [{"role": "system", "content": "abc"}, {"role": "user", "content": "what"}]


def expected(server, prompt, **params):
    params = SamplingParams(**{"temperature": 0, "ignore_eos": True, "max_tokens": 9, **params})
    return server.llm.generate(prompt, params)[0].outputs[0]


def test_models(server):
    [model] = server.client.models.list().data
    assert (model.id, model.max_model_len) == ("toy", 128)
    assert server.client.models.retrieve("toy").id == "toy"


def test_text(server):
    answer = server.client.completions.create(model="toy", prompt="hello", max_tokens=9, **GREEDY)
    assert answer.choices[0].text == expected(server, "hello").text
    assert answer.choices[0].finish_reason == "length"
    usage = answer.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (6, 9, 15)


@pytest.mark.parametrize("prompt", ["hello", [5, 6, 7], ["hello", "abc"], [[5, 6, 7], [9]]], ids=str)
def test_forms_of_prompts(server, prompt):
    answer = server.client.completions.create(model="toy", prompt=prompt, max_tokens=9, **GREEDY)
    several = prompt if isinstance(prompt, list) and not isinstance(prompt[0], int) else [prompt]
    assert [c.index for c in answer.choices] == list(range(len(several)))
    assert [c.text for c in answer.choices] == [expected(server, one).text for one in several]


def test_logprobs_of_the_chosen_tokens(server):
    answer = server.client.completions.create(model="toy", prompt="hello", max_tokens=9, logprobs=0, **GREEDY)
    alone = expected(server, "hello", logprobs=0)
    assert answer.choices[0].logprobs.token_logprobs == alone.logprobs
    assert answer.choices[0].logprobs.top_logprobs is None


def test_streamed_equals_not_streamed(server):
    for prompt in ("hello", ["hello", "abc", "T"]):
        whole = server.client.completions.create(model="toy", prompt=prompt, max_tokens=20, logprobs=0, **GREEDY)
        texts = [""] * len(whole.choices)
        logprobs = [[] for _ in texts]
        finishes = [[] for _ in texts]
        usages = []
        options = {"stream": True, "stream_options": {"include_usage": True}, **GREEDY}
        for event in server.client.completions.create(model="toy", prompt=prompt, max_tokens=20, logprobs=0, **options):
            usages.append(event.usage)
            for choice in event.choices:
                texts[choice.index] += choice.text
                logprobs[choice.index] += choice.logprobs.token_logprobs
                finishes[choice.index].append(choice.finish_reason)
        assert texts == [c.text for c in whole.choices]
        assert logprobs == [c.logprobs.token_logprobs for c in whole.choices]
        assert [f[-1] for f in finishes] == ["length"] * len(texts) and not any(any(f[:-1]) for f in finishes)
        assert not any(usages[:-1]) and usages[-1].completion_tokens == whole.usage.completion_tokens


def test_seeds_make_the_answers_of_n(server):
    ask = {"model": "toy", "prompt": "hello", "max_tokens": 12, "temperature": 1.5}
    one = server.client.completions.create(**ask, n=4, seed=7)
    again = server.client.completions.create(**ask, n=4, seed=7)
    texts = [c.text for c in one.choices]
    assert texts == [c.text for c in again.choices] and len(set(texts)) > 1
    assert server.client.completions.create(**ask, seed=9).choices[0].text == texts[2]
    assert one.usage.prompt_tokens == 6


def test_n_computes_the_prompt_once(server):
    before = dict(server.llm.stats)
    ask = {"model": "toy", "prompt": "a prompt of its own", "max_tokens": 4, "n": 4, "seed": 1}
    tokens = server.client.completions.create(**ask).usage.prompt_tokens
    after = server.llm.stats
    assert after["num_forks"] - before["num_forks"] == 3
    assert after["num_prompt_tokens"] - before["num_prompt_tokens"] <= tokens + 3


def test_best_of_answers_with_the_likeliest(server):
    ask = {"model": "toy", "prompt": "hello", "max_tokens": 12, "seed": 7, "logprobs": 0}
    candidates = server.client.completions.create(**ask, n=6).choices
    candidates.sort(key=lambda c: sum(c.logprobs.token_logprobs) / len(c.logprobs.token_logprobs), reverse=True)
    chosen = server.client.completions.create(**ask, n=2, best_of=6).choices
    assert [c.text for c in chosen] == [c.text for c in candidates[:2]]
    assert [c.index for c in chosen] == [0, 1]


def test_beam_search(server):
    """What the engine finds; best_of, or n, is the number of beams; streamed, answers come at the end."""
    params = SamplingParams(temperature=0, max_tokens=6, beam_width=4, n=4, length_penalty=0.5, logprobs=0)
    [alone] = server.llm.generate("hello", params)
    assert len({answer.text for answer in alone.outputs}) > 1
    ask = {"model": "toy", "prompt": "hello", "max_tokens": 6, "logprobs": 0}
    beams = {"use_beam_search": True, "length_penalty": 0.5, "early_stopping": False}
    found = server.client.completions.create(**ask, n=4, extra_body=beams).choices
    assert [(c.index, c.text) for c in found] == [(c.index, c.text) for c in alone.outputs]
    assert found[0].logprobs.token_logprobs == pytest.approx(alone.outputs[0].logprobs)
    two = server.client.completions.create(**ask, n=2, best_of=4, extra_body=beams).choices
    assert [c.text for c in two] == [c.text for c in found[:2]]
    texts = {0: "", 1: ""}
    for event in server.client.completions.create(**ask, n=2, best_of=4, stream=True, extra_body=beams):
        for choice in event.choices:
            texts[choice.index] += choice.text
    assert texts == {0: found[0].text, 1: found[1].text}
    one = server.client.completions.create(**ask, extra_body=beams).choices
    assert [c.text for c in one] == [expected(server, "hello", max_tokens=6, ignore_eos=False).text]
    answers = server.client.chat.completions.create(
        model="toy", messages=MESSAGES, max_tokens=6, n=3, extra_body={"use_beam_search": True}
    ).choices
    [alone] = server.llm.chat(MESSAGES, SamplingParams(temperature=0, max_tokens=6, beam_width=3, n=3))
    assert [c.message.content for c in answers] == [answer.text for answer in alone.outputs]


def test_stop_strings(server):
    text = expected(server, "hello", max_tokens=30).text
    stop = text[5:7]
    answer = server.client.completions.create(model="toy", prompt="hello", max_tokens=30, stop=stop, **GREEDY)
    assert answer.choices[0].text == text[: text.index(stop)]
    assert (answer.choices[0].finish_reason, answer.choices[0].stop_reason) == ("stop", stop)


def test_chat(server):
    answer = server.client.chat.completions.create(
        model="toy", messages=MESSAGES, max_tokens=9, logprobs=True, **GREEDY
    )
    params = SamplingParams(temperature=0, ignore_eos=True, max_tokens=9, logprobs=0)
    [alone] = server.llm.chat(MESSAGES, params)
    [choice] = answer.choices
    assert (choice.message.role, choice.message.content) == ("assistant", alone.outputs[0].text)
    assert [t.logprob for t in choice.logprobs.content] == alone.outputs[0].logprobs
    assert b"".join(bytes(t.bytes) for t in choice.logprobs.content).decode(errors="replace") == choice.message.content
    assert answer.usage.prompt_tokens == len(alone.prompt_token_ids)


def test_chat_streams(server):
    whole = server.client.chat.completions.create(
        model="toy", messages=MESSAGES, max_tokens=20, n=2, seed=3, temperature=1
    )
    texts, roles, finishes = ["", ""], [0, 0], ["", ""]
    for event in server.client.chat.completions.create(
        model="toy", messages=MESSAGES, max_tokens=20, n=2, seed=3, temperature=1, stream=True
    ):
        [choice] = event.choices
        texts[choice.index] += choice.delta.content or ""
        roles[choice.index] += choice.delta.role == "assistant"
        finishes[choice.index] += choice.finish_reason or ""
    assert texts == [c.message.content for c in whole.choices]
    assert (roles, finishes) == ([1, 1], [c.finish_reason for c in whole.choices])


def test_a_message_in_parts(server):
    parts = [{"type": "text", "text": "ab"}, {"type": "text", "text": "cd"}]
    ask = {"model": "toy", "max_tokens": 9, **GREEDY}
    one = server.client.chat.completions.create(messages=[{"role": "user", "content": parts}], **ask)
    other = server.client.chat.completions.create(messages=[{"role": "user", "content": "ab\ncd"}], **ask)
    assert one.choices[0].message.content == other.choices[0].message.content


def test_chat_fills_what_the_engine_holds(server):
    answer = server.client.chat.completions.create(model="toy", messages=MESSAGES, **GREEDY)
    assert answer.usage.total_tokens == 128


def test_a_known_beginning_is_reported(server):
    ask = {"model": "toy", "prompt": [7] * 21, "max_tokens": 2, **GREEDY}
    cached = [server.client.completions.create(**ask).usage.prompt_tokens_details.cached_tokens for _ in range(2)]
    assert cached == [0, 20]
    ask["extra_body"] = {"ignore_eos": True, "cache_salt": "other"}
    assert server.client.completions.create(**ask).usage.prompt_tokens_details.cached_tokens == 0


def test_tokenize(server):
    ids = server.llm.tokenizer.encode("hello 😀")
    found = server.http.post("/tokenize", json={"prompt": "hello 😀", "return_token_strs": True}).json()
    assert (found["tokens"], found["count"], found["max_model_len"]) == (ids, len(ids), 128)
    assert len(found["token_strs"]) == len(ids)
    assert server.http.post("/detokenize", json={"tokens": ids[1:]}).json() == {"prompt": "hello 😀"}
    chat = server.http.post("/tokenize", json={"messages": MESSAGES}).json()
    assert chat["tokens"] == server.llm.tokenizer.encode_chat(MESSAGES)


def test_echo_with_logprobs_scores_the_prompt(server):
    """What lm-eval asks for; also with no token of its own."""
    params = SamplingParams(temperature=0, ignore_eos=True, max_tokens=3, logprobs=2, prompt_logprobs=2)
    [alone] = server.llm.generate("hello", params)
    scored = alone.prompt_logprobs + alone.outputs[0].logprobs
    for max_tokens in (3, 1, 0):
        [choice] = server.client.completions.create(
            model="toy", prompt="hello", max_tokens=max_tokens, echo=True, logprobs=2, **GREEDY
        ).choices
        assert choice.logprobs.token_logprobs == scored[: 6 + max_tokens]
        assert choice.logprobs.tokens[:3] == ["<bos>", "h", "e"]
        assert choice.logprobs.text_offset[:4] == [0, 0, 1, 2]
        assert choice.logprobs.top_logprobs[0] is None and choice.finish_reason == "length"
        assert all(len(top) in (2, 3) for top in choice.logprobs.top_logprobs[1:])
    answer = server.client.completions.create(model="toy", prompt="hello", max_tokens=0, echo=True)
    assert (answer.choices[0].text, answer.usage.completion_tokens) == ("hello", 0)


def test_rules_and_likely_tokens(server):
    rules = {
        "frequency_penalty": 1.5,
        "presence_penalty": -0.5,
        "logit_bias": {"7": 3},
        "extra_body": {"min_tokens": 4, "bad_words": ["a"]},
    }
    answer = server.client.chat.completions.create(
        model="toy", messages=MESSAGES, max_tokens=9, logprobs=True, top_logprobs=3, temperature=0, **rules
    )
    params = SamplingParams(
        temperature=0, max_tokens=9, logprobs=3, frequency_penalty=1.5, presence_penalty=-0.5, logit_bias={7: 3.0},
        min_tokens=4, bad_words=["a"],
    )  # fmt: skip
    alone = server.llm.chat(MESSAGES, params)[0].outputs[0]
    [choice] = answer.choices
    assert choice.message.content == alone.text
    found = [[one.logprob for one in token.top_logprobs] for token in choice.logprobs.content]
    assert found == [list(top.values()) for top in alone.top_logprobs]


def test_structured_outputs(server):
    def ask(**extra):
        answer = server.client.chat.completions.create(
            model="toy", messages=MESSAGES, max_tokens=60, temperature=2, seed=3, extra_body=extra
        )
        return answer.choices[0]

    assert ask(structured_outputs={"choice": ["abc", "TQ"]}).message.content in ("abc", "TQ")
    found = ask(structured_outputs={"regex": "[a-c]{3}: T"})
    assert re.fullmatch("[a-c]{3}: T", found.message.content) and found.finish_reason == "stop"
    assert ask(response_format={"type": "text"}).message.content
    body = {"prompt": "a", "max_tokens": 20, "structured_outputs": {"choice": ["abc"]}}
    assert server.http.post("/v1/completions", json=body).json()["choices"][0]["text"] == "abc"


def test_events_of_text_are_those_that_are_made_whole():
    from llmc.server.protocol import Completion, CompletionChoice
    from llmc.server.streaming import event, text_events

    def made(text: str) -> Completion:
        choices = [CompletionChoice(index=3, text=text)]
        return Completion(id='cmpl-"x', created=5, model='a "name" with 😀', choices=choices)

    fast = text_events(made)
    for text in ("", "a", '"quoted"\n\u2028', "😀é", "\x00\\"):
        assert fast(text) == event(made(text))
