"""A byte-level BPE of 1,000 entries, trained on the sample corpus, and variants of its file."""

from __future__ import annotations

import json
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from assets.tokenized.tokenizer import train_bpe
from resources.settings.tokenizer import TokenizerConfig

MULTILINGUAL = Path(__file__).parents[1] / "sample_data/multilingual/part-1.parquet"
VOCAB_SIZE = 1000


# Places where the patterns differ: contractions, digits, changes of case, marks, blanks, line ends.
TEXTS_OF_PLACES = (
    "'s|'S|'ll|'LL|'Ve|'|’s|don't|I'D|camelCase|HTTPServer|ABc|ǅ|ʰ|ſ|İ|ß|1|12|1234567|²|Ⅳ|٣٤|1,0.5"
    "|é|e\u0301|\u0301|हिन्दी|ि|தமிழ்|ไทย|한국|中文|かな|カ|ー|👩\u200d👧|🏳️|/|//|./\n|...|!\n|_|-|(|)/"
    "| |  |   |\t|\n|\r\n|\n\n|\r|\u00a0|\u3000|\x85|\u2028|\x1c|\u200b|\ufeff"
)
PLACES = TEXTS_OF_PLACES.split("|")


@cache
def sample_texts() -> list[str]:
    """Texts in many languages."""
    return pl.read_parquet(MULTILINGUAL)["text"].to_list()


@cache
def trained() -> str:
    """The tokenizer.json; `<|endoftext|>` is id 0."""
    return train_bpe([sample_texts()[:60]], TokenizerConfig(vocab_size=VOCAB_SIZE))


@cache
def trained_with(**keys: Any) -> str:
    """The tokenizer.json of a config with other keys."""
    config = TokenizerConfig.model_validate({"vocab_size": VOCAB_SIZE} | keys)
    return train_bpe([sample_texts()[:60]], config)


@cache
def trained_on_places(pattern: str, digits: int | None) -> str:
    """The tokenizer.json of a pattern, with merges across the places where patterns differ."""
    keys = {"vocab_size": 9000, "min_frequency": 1, "pattern": pattern, "digits": digits}
    pairs = ["".join(pair) for pair in product(PLACES, PLACES)]
    return train_bpe([sample_texts()[:10], pairs], TokenizerConfig.model_validate(keys))


def changed(**parts: Any) -> str:
    """The trained tokenizer.json with other parts."""
    return json.dumps(json.loads(trained()) | parts)


def with_token(content: str, *, special: bool) -> str:
    """The trained tokenizer.json with one more added token."""
    tokenizer = json.loads(trained())
    end = tokenizer["added_tokens"][0]
    token_id = len(tokenizer["model"]["vocab"])
    added = {"content": content, "id": token_id, "special": special}
    return json.dumps(tokenizer | {"added_tokens": [end, end | added]})


def with_entries(entries: dict[str, int]) -> str:
    """The trained tokenizer.json with more vocabulary entries."""
    model = json.loads(trained())["model"]
    return changed(model=model | {"vocab": model["vocab"] | entries})
