"""Documents rearranged for filling in the middle: their form, and that nothing of them is lost."""

from __future__ import annotations

import hashlib
import json
from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tokenizer import VOCAB_SIZE, sample_texts

from assets.tokenized import encode_documents as module
from assets.tokenized import text_pieces
from assets.tokenized.encode_documents import TokenFormat, doc_heads, encode_documents
from assets.tokenized.encoders import Encoders, load_encoders
from assets.tokenized.fill_in_the_middle import FillForm, count_modes, draw
from assets.tokenized.kept_tokenizer import config_of, refusal, training_changes
from assets.tokenized.round_trip import round_trip
from assets.tokenized.tokenizer import TokenizerError, fill_ids, train_bpe
from resources.settings.fill_in_the_middle import FillTokens
from resources.settings.tokenizer import TokenizerConfig

CONFIG = TokenizerConfig(vocab_size=VOCAB_SIZE).with_fill_tokens()
PREFIX, MIDDLE, SUFFIX = 1, 2, 3
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@cache
def tokenizer_json() -> str:
    return train_bpe([sample_texts()[:60]], CONFIG)


def encoders() -> Encoders:
    return load_encoders(tokenizer_json())


def form(rate: float = 1, spm_rate: float = 0.5, begin_id: int | None = None) -> TokenFormat:
    fill = FillForm(rate, spm_rate, 0, PREFIX, MIDDLE, SUFFIX)
    return TokenFormat(VOCAB_SIZE, 0, begin_id, offsets=True, fill=fill)


def documents(*texts: str) -> pl.DataFrame:
    ids = [hashlib.md5(str(row).encode()).hexdigest() for row in range(len(texts))]
    return pl.DataFrame({"doc_id": ids, "text": texts}, schema={"doc_id": str, "text": str})


def spelled(given_form: TokenFormat, *texts: str) -> list[str]:
    encoded = encode_documents(documents(*texts), encoders(), given_form)
    tokenizer = encoders().reference.tokenizer
    return tokenizer.decode_batch(encoded["tokens"].to_list(), skip_special_tokens=False)


def test_prefix_first_and_suffix_first() -> None:
    assert spelled(form(spm_rate=0), "abc def ghi") == [PSM]
    assert spelled(form(spm_rate=1), "abc def ghi") == [SPM]


PSM = "<|fim_prefix|><|fim_suffix|>bc def ghi<|fim_middle|>a<|endoftext|>"
SPM = "<|fim_prefix|><|fim_suffix|>bc def ghi<|fim_middle|>a<|endoftext|>"


@settings(deadline=None, max_examples=60)
@given(st.lists(TEXTS, max_size=8), st.sampled_from([None, 999]), st.sampled_from([0.0, 0.5, 1.0]))
def test_taken_apart_a_document_is_its_text(
    texts: list[str], begin_id: int | None, spm_rate: float
) -> None:
    given_form = form(0.7, spm_rate, begin_id)
    encoded = encode_documents(documents(*texts), encoders(), given_form)
    tokenizer = encoders().reference.tokenizer
    kept = [text for text in texts if text]
    draws = draw(doc_heads(encoded["doc_id"]), given_form.fill)  # type: ignore[arg-type]

    for text, ids, starts, is_rearranged, is_spm in zip(
        kept, encoded["tokens"], encoded["offsets"], *draws[:2], strict=True
    ):
        inner = ids.to_list()[given_form.num_marks - 1 : -1]
        if is_rearranged:
            prefix, middle, suffix = (inner.index(mark) for mark in (PREFIX, MIDDLE, SUFFIX))
            assert (suffix == prefix + 1) or not is_spm
            assert (prefix < suffix < middle) and ids.len() == len(inner) + given_form.num_marks
            runs = inner[1:suffix], inner[suffix + 1 : middle], inner[middle + 1 :]
            first, last, mid = tokenizer.decode_batch(runs, skip_special_tokens=False)
            assert first + mid + last == text or "\ufffd" in first + mid + last
        data, spell = text.encode(), [len(tokenizer.id_to_token(token)) for token in inner]
        places = starts.to_list()[given_form.num_marks - 1 : -1]
        covered = sorted(
            (at, at + size)
            for token, at, size in zip(inner, places, spell, strict=True)
            if token not in (PREFIX, MIDDLE, SUFFIX)
        )
        assert [0, *(stop for _, stop in covered)] == [*(at for at, _ in covered), len(data)]
    assert round_trip(documents(*texts), encoded, encoders(), given_form).failed == []


@pytest.mark.filterwarnings("ignore:fastokens")
def test_slices_pieces_and_encoders_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    given_documents = documents("a", "", *sample_texts()[:20], "x" * 90, "the mill " * 9)
    one = encode_documents(given_documents, encoders(), form(0.7))
    reference = encoders().reference
    assert encode_documents(given_documents, Encoders(reference, reference), form(0.7)).equals(one)

    monkeypatch.setattr(text_pieces, "PIECE_CHARS", 20)
    monkeypatch.setattr(module, "SLICE_BYTES", 20)

    assert encode_documents(given_documents, encoders(), form(0.7)).equals(one)
    reverse = encode_documents(given_documents.reverse(), encoders(), form(0.7))
    assert reverse.reverse().equals(one)


def test_what_is_drawn_is_golden() -> None:
    heads = np.arange(8, dtype=np.uint64) << np.uint64(60)
    draws = draw(heads, form(0.5).fill)  # type: ignore[arg-type]
    assert (draws.is_rearranged.tolist(), draws.is_spm.tolist()) == DRAWN
    assert (draws.numbers[:4] % np.uint64(1000)).tolist() == NUMBERS


DRAWN = (
    [False, True, True, False, False, False, True, True],
    [False, False, False, False, True, False, False, True],
)
NUMBERS = [[156, 588], [152, 605], [438, 67], [199, 490]]


def test_shares_are_those_of_the_config() -> None:
    heads = np.random.default_rng(0).integers(0, 1 << 63, 20_000).astype(np.uint64)
    counts = count_modes(heads, FillForm(0.4, 0.25, 0, PREFIX, MIDDLE, SUFFIX))
    assert abs(counts["psm"] - 6000) < 300 and abs(counts["spm"] - 2000) < 200
    assert counts["special_tokens"] == 3 * (counts["psm"] + counts["spm"])


def test_text_that_spells_the_tokens_stays_text() -> None:
    text = "<|fim_middle|><|fim_prefix|> x <|fim_suffix|>"
    encoded = encode_documents(documents(*[text] * 50), encoders(), form(0.5))
    assert sum(encoded["tokens"].explode().is_in([PREFIX, MIDDLE, SUFFIX])) == (
        3 * draw(doc_heads(encoded["doc_id"]), form(0.5).fill).is_rearranged.sum()  # type: ignore[arg-type]
    )
    assert round_trip(documents(*[text] * 50), encoded, encoders(), form(0.5)).failed == []


def test_a_wrong_text_is_found_in_a_rearranged_document() -> None:
    texts = sample_texts()[:20]
    encoded = encode_documents(documents(*texts), encoders(), form())
    wrong = documents(texts[0][:-1] + "\x00", *texts[1:])
    assert round_trip(wrong, encoded, encoders(), form()).failed == [wrong["doc_id"][0]]


def added(*tokens: tuple[str, bool]) -> bytes:
    entries = [{"id": i, "content": c, "special": s} for i, (c, s) in enumerate(tokens)]
    return json.dumps({"added_tokens": entries}).encode()


def test_tokens_that_a_tokenizer_lacks_are_named() -> None:
    wanted = FillTokens()
    all_three = added(*((token, True) for token in wanted.all))
    assert fill_ids(all_three, wanted, is_trained=False) == (0, 1, 2)
    with pytest.raises(
        TokenizerError, match=r"look like them: \['<fim_prefix>'\].*fill_in_the_mid"
    ):
        fill_ids(added(("<fim_prefix>", True), ("<s>", True)), wanted, is_trained=False)
    with pytest.raises(TokenizerError, match="`corpus tokenizer retrain` trains the next one"):
        fill_ids(added(), wanted, is_trained=True)
    with pytest.raises(TokenizerError, match=r"text may spell \['<\|fim_prefix\|>'\]"):
        fill_ids(added(("<|fim_prefix|>", False)), wanted, is_trained=False)


def test_a_kept_tokenizer_without_the_tokens_is_refused_and_more_tokens_are_no_change() -> None:
    plain = config_of(TokenizerConfig(vocab_size=VOCAB_SIZE))
    changes = training_changes(plain, config_of(CONFIG), ())
    shown = refusal(changes, [], CONFIG.fill_in_the_middle_tokens.all)
    assert "special_tokens, which fill_in_the_middle of a source adds to," in shown
    assert "`corpus tokenizer retrain`" in shown
    assert training_changes(config_of(CONFIG), plain, ()) == {}
