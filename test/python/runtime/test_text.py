"""Text rules: whole characters only, stop strings in any segmentation, one BOS in chat."""

from __future__ import annotations

import random

import pytest

from llmc.runtime.chat_template import ChatTemplate
from llmc.runtime.detokenizer import IncrementalDetokenizer
from llmc.runtime.stop_strings import StopStringMatcher


def decode_bytes(ids):
    return bytes(ids).decode("utf-8", errors="replace")


@pytest.mark.parametrize("text", ["plain", "日本語のテキスト", "👩‍👩‍👧 family", "é😀a", "\ufffd kept"])
def test_detokenizer_emits_whole_characters_only(text):
    detokenizer = IncrementalDetokenizer(decode_bytes)
    pieces = [detokenizer.push(byte) for byte in text.encode()]
    pieces.append(detokenizer.finish())
    assert "".join(pieces) == text
    if "\ufffd" not in text:
        assert not any("\ufffd" in piece for piece in pieces)


def test_detokenizer_gives_up_on_bytes_that_are_no_utf8():
    calls = []

    def decode(ids):
        calls.append(len(ids))
        return decode_bytes(ids)

    detokenizer = IncrementalDetokenizer(decode)
    out = "".join(detokenizer.push(0x80) for _ in range(1000)) + detokenizer.finish()
    assert out == "\ufffd" * 1000
    assert max(calls) <= 16  # bounded work a token


def test_detokenizer_flushes_an_unfinished_character_at_the_end():
    detokenizer = IncrementalDetokenizer(decode_bytes)
    assert [detokenizer.push(byte) for byte in "a😀".encode()[:-1]] == ["a", "", "", ""]
    assert detokenizer.finish() == "\ufffd"


def test_detokenizer_hides_special_tokens():
    detokenizer = IncrementalDetokenizer(decode_bytes, hidden_ids={7})
    assert [detokenizer.push(id) for id in (97, 7, 98)] == ["a", "", "b"]


def test_detokenizer_keeps_the_space_of_a_word_that_follows():
    # SentencePiece decodes the first word of a sequence without its space.
    words = {1: " Hello", 2: " world", 3: "!"}
    detokenizer = IncrementalDetokenizer(lambda ids: "".join(words[id] for id in ids).lstrip(" "))
    assert [detokenizer.push(id) for id in (1, 2, 3, 2)] == ["Hello", " world", "!", " world"]


def run_matcher(stops, pieces, **options):
    matcher = StopStringMatcher(stops, **options)
    out = ""
    for piece in pieces:
        out += matcher.push(piece)
        if matcher.matched is not None:
            return out, matcher.matched
    return out + matcher.finish(), None


def test_no_part_of_a_stop_string_is_shown():
    matcher = StopStringMatcher(["STOP"])
    assert [matcher.push(c) for c in "aSTxST"] == ["a", "", "", "STx", "", ""]
    assert matcher.push("OP and more") == ""
    assert matcher.matched == "STOP"


def test_held_text_comes_out_at_the_end():
    assert run_matcher(["</s>"], ["a</", "s"]) == ("a</s", None)


def test_stop_string_in_output_when_asked():
    assert run_matcher(["END"], ["xE", "NDy"], include_in_output=True) == ("xEND", "END")


def test_matching_does_not_depend_on_the_segmentation():
    rng = random.Random(5)
    for _ in range(2000):
        text = "".join(rng.choice("ab") for _ in range(rng.randint(0, 12)))
        stops = ["".join(rng.choice("ab") for _ in range(rng.randint(1, 4))) for _ in range(rng.randint(1, 3))]
        expected = run_matcher(stops, list(text))
        cuts = sorted(rng.sample(range(len(text) + 1), min(len(text), rng.randint(0, 4))))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert run_matcher(stops, pieces) == expected, (text, stops, pieces)


def test_template_globals_of_transformers():
    template = ChatTemplate("{{ strftime_now('%Y') }}{% generation %}{{ messages[0] | tojson }}{% endgeneration %}", {})
    assert template.render([{"content": "<é>"}]).endswith('{"content": "<é>"}')


def test_template_that_refuses_is_a_value_error():
    template = ChatTemplate("{{ raise_exception('roles must alternate') }}", {})
    with pytest.raises(ValueError, match="roles must alternate"):
        template.render([])


def test_template_is_sandboxed():
    template = ChatTemplate("{{ messages.__class__.__mro__ }}", {})
    with pytest.raises(ValueError, match="refuses"):
        template.render([])


def test_template_with_a_syntax_error_is_named():
    with pytest.raises(ValueError, match="not valid"):
        ChatTemplate("{% for %}", {})
