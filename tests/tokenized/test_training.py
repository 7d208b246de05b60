"""Training, compared with the trainer of `tokenizers`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from many_examples import many_examples
from sample_texts import texts_of_sources
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from assets.tokenized.tokenizer import canonical_json
from assets.tokenized.training import byte_words, train_byte_pairs
from assets.tokenized.word_classes import character_classes
from resources.settings.tokenizer import END_OF_DOCUMENT

SPLIT = pre_tokenizers.ByteLevel(add_prefix_space=False)
NEWER = chr(0x1CD00)  # a symbol of Unicode 16, which no Python up to 3.13 knows
# Few letters make many ties and repeats; the rest are those that cutting looks at.
texts = st.lists(
    st.text(
        st.sampled_from("aab AB1٣²'sltre\n\t\u00a0\u3000-.éß你た\u0301👩\u200d" + NEWER),
        max_size=40,
    )
    | st.text(max_size=20),
    max_size=12,
)


def by_tokenizers(
    batch: Sequence[str], special: Sequence[str], vocab_size: int, min_frequency: int
) -> str:
    """The tokenizer.json that `tokenizers` trains."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = SPLIT
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(batch, trainer)
    return canonical_json(tokenizer.to_str())


def trained(batch: Sequence[str], *config: Any) -> str:
    return canonical_json(train_byte_pairs(pl.Series(batch, dtype=pl.String), *config))


@pytest.mark.parametrize(("vocab_size", "min_frequency"), [(270, 2), (3000, 2), (40_000, 5)])
def test_documents_of_all_kinds_train_the_tokenizer_of_tokenizers(
    vocab_size: int, min_frequency: int
) -> None:
    config = ((END_OF_DOCUMENT,), vocab_size, min_frequency)
    documents = texts_of_sources().to_list()
    assert trained(documents, *config) == by_tokenizers(documents, *config)


@pytest.mark.slow
@many_examples(300)
@given(texts, st.sampled_from([260, 264, 300, 400]), st.integers(1, 4))
@example(["aaaaaaa aaa aaaa", "ababab bababa"], 300, 1)
@example([f"a{NEWER}b  {NEWER}  12"] * 3, 300, 1)
def test_any_texts_train_the_tokenizer_of_tokenizers(
    batch: list[str], vocab_size: int, min_frequency: int
) -> None:
    config = ((END_OF_DOCUMENT,), vocab_size, min_frequency)
    assert trained(batch, *config) == by_tokenizers(batch, *config)


@pytest.mark.parametrize("special", [("a",), ("ab", "c"), ("the", "Ġ"), ("a b", "<s>"), ("你",)])
def test_special_tokens_that_merges_spell_get_no_second_entry(special: tuple[str, ...]) -> None:
    documents = ["abc the abc ab the a b cab 你你"] * 5
    config = (special, 300, 1)
    assert trained(documents, *config) == by_tokenizers(documents, *config)


def test_words_are_counted_as_tokenizers_cuts_them() -> None:
    documents = [*texts_of_sources().to_list(), f"new {NEWER} sign", "", "you'll  we've \n\n 'tis"]
    expected = Counter(
        text[start:stop].encode()
        for text in documents
        for _, (start, stop) in SPLIT.pre_tokenize_str(text)
    )

    ids, edges, numbers = byte_words(pl.Series(documents), np.arange(256, dtype=np.int32))

    data = bytes(ids.astype(np.uint8))
    spans = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    words = [data[start:stop] for start, stop in spans]
    assert dict(zip(words, numbers.tolist(), strict=True)) == expected


def test_classes_of_characters_are_those_of_tokenizers() -> None:
    """A character is of the class of those that it makes one word with."""
    from assets.tokenized.kernels.word_cutting import BLANK, LETTER, NUMBER, OTHER, UNKNOWN

    classes = character_classes()
    points = [p for p in np.flatnonzero(classes != UNKNOWN).tolist() if not 0xD800 <= p < 0xE000]
    cut: dict[int, int] = {}
    for kind, before in ((LETTER, "a"), (NUMBER, "1"), (OTHER, "-")):
        line = "".join(f"{before}{chr(point)}\n" for point in points)
        ends = {start: stop for _, (start, stop) in SPLIT.pre_tokenize_str(line)}
        for place, point in enumerate(points):
            if ends.get(3 * place, 0) == 3 * place + 2:
                cut[point] = kind
    assert [cut.get(point, BLANK) for point in points] == classes[points].tolist()
