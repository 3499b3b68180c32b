"""What is wrong with a request is said in one error of OpenAI's shape, and costs nobody else anything."""

from __future__ import annotations

import pytest

CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
MESSAGES = [{"role": "user", "content": "x"}]

UNIQUE = {"structured_outputs": {"json": {"type": "array", "uniqueItems": True}}}
BEAMS = {"use_beam_search": True, "n": 2}
TWICE = {"structured_outputs": {"regex": "a"}, "response_format": {"type": "json_object"}}

BAD = [
    (TEXT, {}, 400, "prompt: Field required"),
    (TEXT, {"prompt": []}, 400, "found an empty list"),
    (TEXT, {"prompt": ["a", 1]}, 400, "prompt"),
    (TEXT, {"prompt": "a", "model": "gpt"}, 404, "model 'gpt' is not served here; there is 'toy'"),
    (TEXT, {"prompt": "a", "colour": "red"}, 400, "unknown field 'colour'"),
    (TEXT, {"prompt": "a", "max_tokens": 500}, 400, "the prompt has 2 tokens and 500 are asked for"),
    (TEXT, {"prompt": "a" * 200}, 400, "holds 128"),
    (TEXT, {"prompt": "a" * 100_000}, 400, "the prompt has 100000 characters"),
    (TEXT, {"prompt": [1, 99]}, 400, "99"),
    (TEXT, {"prompt": [-1]}, 400, "greater than or equal to 0"),
    (TEXT, {"prompt": "a", "temperature": -1}, 400, "temperature"),
    (TEXT, {"prompt": "a", "top_p": 0}, 400, "top_p"),
    (TEXT, {"prompt": "a", "n": 0}, 400, "n: "),
    (TEXT, {"prompt": "a", "n": 100}, 400, "asks for 100 completions at once; this server holds 16"),
    (TEXT, {"prompt": "a", "n": 2, "best_of": 20, "stream": False}, 400, "asks for 20 completions at once"),
    (TEXT, {"prompt": "a", "n": 2, "best_of": 1}, 400, "best_of: expected at least n, which is 2, found 1"),
    (TEXT, {"prompt": "a", "best_of": 2, "stream": True}, 400, "best_of cannot be streamed"),
    (TEXT, {"prompt": "a", **BEAMS, "n": 16}, 400, "max_batch_size is"),
    (TEXT, {"prompt": "a", **BEAMS, "temperature": 0.5}, 400, "temperature and a beam_width above 1 exclude"),
    (TEXT, {"prompt": "a", **BEAMS, "stop": "x"}, 400, "use stop_token_ids"),
    (TEXT, {"prompt": "a", **BEAMS, "early_stopping": "soon"}, 400, "early_stopping"),
    (TEXT, {"prompt": "a", "stop": [""]}, 400, "stop strings must not be empty"),
    (TEXT, {"prompt": "a", "stream": "perhaps"}, 400, "stream"),
    (TEXT, {"prompt": "a", "suffix": "b"}, 400, "suffix is not supported yet"),
    (CHAT, {"messages": []}, 400, "messages"),
    (CHAT, {"messages": [{"role": "robot", "content": "x"}]}, 400, "messages.0.role"),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, 400, "type"),
    (CHAT, {"messages": MESSAGES, "top_logprobs": 2}, 400, "top_logprobs needs logprobs=true"),
    (CHAT, {"messages": MESSAGES, "response_format": {"type": "json_schema"}}, 400, "expected json_schema"),
    (CHAT, {"messages": MESSAGES, "response_format": {"type": "yaml"}}, 400, "response_format.type"),
    (CHAT, {"messages": MESSAGES, "structured_outputs": {}}, 400, "expected one of json"),
    (CHAT, {"messages": MESSAGES, "structured_outputs": {"regex": "(a"}}, 400, "unclosed group"),
    (CHAT, {"messages": MESSAGES, **UNIQUE}, 400, "uniqueItems"),
    (TEXT, {"prompt": "a", **TWICE}, 400, "exclude"),
    (TEXT, {"prompt": "a", "structured_outputs": {"regex": "a"}, "ignore_eos": True}, 400, "exclude each other"),
    (TEXT, {"prompt": "a", "logit_bias": {"x": 1}}, 400, "logit_bias"),
    (TEXT, {"prompt": "a", "logit_bias": {"64": 1}}, 400, "logit_bias"),
    (TEXT, {"prompt": "a", "presence_penalty": 3}, 400, "presence_penalty"),
    (TEXT, {"prompt": "a", "logprobs": 21}, 400, "logprobs"),
    (TEXT, {"prompt": "a", "max_tokens": 0}, 400, "or 0 with echo"),
    (CHAT, {"messages": MESSAGES, "tools": [{"type": "function"}]}, 400, "tools"),
    ("/tokenize", {"messages": [{"role": "user"}]}, 400, "the chat template refuses these messages"),
    (TEXT, {"prompt": "a", "max_tokens": "5"}, 400, "max_tokens: Input should be a valid integer"),
    ("/tokenize", {}, 400, "found neither"),
    ("/detokenize", {"tokens": [64]}, 400, "expected ids below"),
    ("/nowhere", {}, 404, "there is no /nowhere here"),
    ("/health", {}, 405, "does not take POST"),
]  # fmt: skip


@pytest.fixture
def small(serve):
    return serve(max_requests=16, max_body_bytes=200_000)


@pytest.mark.parametrize("stream", [False, True])
def test_bad_requests(small, stream):
    for path, body, status, message in BAD:
        if stream and path in (CHAT, TEXT) and "stream" not in body:
            body = {**body, "stream": True}
        answer = small.http.post(path, json=body)
        assert answer.status_code == status, (path, body, answer.text)
        error = answer.json()["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert message in error["message"], (body, error)
    assert small.settle()["num_steps"] == 0


def test_a_grammar_that_the_vocabulary_cannot_write(server):
    """The toy knows no quote. The message is a sentence, without the grammar's insides."""
    body = {
        "messages": MESSAGES,
        "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "string"}}},
    }
    answer = server.http.post(CHAT, json=body)
    message = answer.json()["error"]["message"]
    assert answer.status_code == 400 and "doesn't satisfy the grammar" in message and "<" not in message
    server.settle()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b'{"prompt": 1e999}', b"null", b'{"prompt": "a"}' * 2])
def test_bodies_that_are_no_request(small, body):
    answer = small.http.post(TEXT, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400 and answer.json()["error"]["message"]


def test_deep_bodies(small):
    for body in ("[" * 100_000, '{"a":' * 30_000):
        assert small.http.post(TEXT, content=body, headers={"content-type": "application/json"}).status_code == 400


def test_large_bodies(small):
    def pieces():
        for _ in range(100):
            yield b" " * 10_000

    for content in (b" " * 300_000, pieces()):
        answer = small.http.post(TEXT, content=content, headers={"content-type": "application/json"})
        assert answer.status_code == 413
        assert "the body may have 200000 bytes" in answer.json()["error"]["message"]


def test_keys(serve):
    server = serve(api_keys=("right", "other"))
    assert server.client.models.list().data[0].id == "toy"
    for headers, found in (
        ({}, "no key"),
        ({"authorization": "Bearer wrong"}, "not known"),
        ({"authorization": "right"}, "no key"),
    ):
        answer = server.http.get("/v1/models", headers=headers)
        assert answer.status_code == 401 and found in answer.json()["error"]["message"]
    assert server.http.get("/v1/models", headers={"authorization": "Bearer other"}).status_code == 200
    assert server.http.post("/tokenize", json={"prompt": "a"}).status_code == 401
    assert server.http.get("/health").status_code == 200


def test_pages_of_other_origins(serve):
    server = serve(allowed_origins=("https://example.org",), api_keys=("k",))
    asked = {"origin": "https://example.org", "access-control-request-method": "POST"}
    answer = server.http.options(TEXT, headers=asked)
    assert answer.status_code == 200 and answer.headers["access-control-allow-origin"] == "https://example.org"
    answer = server.http.options(TEXT, headers={**asked, "origin": "https://example.com"})
    assert "access-control-allow-origin" not in answer.headers


def test_a_full_queue_says_how_full(serve):
    import threading

    server = serve(max_requests=4)
    body = {"prompt": "a", "n": 4, "max_tokens": 120, "ignore_eos": True, "temperature": 0}
    statuses = []

    def ask():
        statuses.append(server.http.post(TEXT, json=body))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    codes = sorted(answer.status_code for answer in statuses)
    assert codes[0] == 200 and set(codes) <= {200, 429}
    for answer in statuses:
        if answer.status_code == 429:
            assert "the limit is 4" in answer.json()["error"]["message"] and answer.headers["retry-after"]
    server.settle()
    assert server.http.post(TEXT, json=body).status_code == 200
