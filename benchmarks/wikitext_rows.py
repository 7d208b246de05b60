"""Rows like those of WikiText, put together from sentences of the sample corpus.

WikiText-103 has a row per paragraph or heading, of 470 bytes on average without its empty rows.
Here a quarter are headings (` = Title = `), the others have one to eleven sentences. The sentences
are real, their order is drawn: row i is the same for a seed, however many rows are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from corpus_texts import read_texts

SAMPLE = Path(__file__).resolve().parent.parent / "sample_data"
PROSE = ("books", "reference", "science", "web")
SENTENCE = re.compile(r"[A-Z][^\n]{40,280}?[.!?](?=\s|$)")
HEADINGS, MOST_SENTENCES, MOST_TITLE_WORDS = 0.25, 11, 5
BLOCK = 1000  # rows that share a random generator


def wikitext_rows(count: int, seed: int = 0) -> Iterator[str]:
    """Yield `count` rows."""
    sentences = sample_sentences()
    for block in range(-(-count // BLOCK)):
        rng = np.random.default_rng([seed, block])
        kinds = rng.random(BLOCK)
        lengths = rng.integers(1, MOST_SENTENCES + 1, BLOCK)
        picks = rng.integers(len(sentences), size=(BLOCK, MOST_SENTENCES))
        for row in range(min(BLOCK, count - block * BLOCK)):
            picked = [sentences[pick] for pick in picks[row, : lengths[row]].tolist()]
            if kinds[row] < HEADINGS:
                title = " ".join(picked[0].split()[: min(lengths[row], MOST_TITLE_WORDS)])
                yield f" = {title} = "
            else:
                yield f" {' '.join(picked)} "


def sample_sentences() -> list[str]:
    """Return the different sentences of the English sources, in a fixed order."""
    documents = read_texts(SAMPLE)
    texts = documents.filter(documents["source"].is_in(PROSE))["text"]
    return list(dict.fromkeys(found for text in texts for found in SENTENCE.findall(text)))
