"""Vectors and topics are the same bytes, whatever the processor's kernels for floats."""

import subprocess
import sys

from prelude import Path, np, os, pl, pytest
from slow_words import NASTY

from assets.annotated.topics.topics import train_topics
from assets.annotated.vectors.lexical import LexicalModel, embed_lexical

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import hashlib, sys
import numpy as np, polars as pl
from assets.annotated.topics.topics import Topics, assign_topics
from assets.annotated.vectors.lexical import LexicalModel, embed_lexical
read = lambda name: pl.read_parquet(f"{sys.argv[1]}/{name}.parquet")
texts = read("texts")["text"]
vectors = embed_lexical(texts, LexicalModel.from_table(read("lexical")))
topics = assign_topics(vectors, texts.str.slice(0, 1), Topics.from_table(read("topics")))
own = topics.write_csv().encode() + vectors.tobytes()
floats = np.random.default_rng(0).normal(size=(300, 300)).astype("f4")
print(*(hashlib.sha256(each).hexdigest() for each in (own, (floats @ floats).tobytes())))
"""


def digests(folder: Path, **processor: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder)],
        cwd=ROOT,
        env=os.environ | processor,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()[-2:]


@pytest.mark.slow
def test_two_processors_give_the_same_bytes_and_other_floats(tmp_path: Path) -> None:
    drawn = np.random.default_rng(1)
    table = drawn.integers(-127, 128, (1 << 12, 256), np.int8)
    model = LexicalModel(table, drawn.integers(0, 2048, 1 << 12, np.uint16))
    words = np.array([f"w{number}" for number in range(2000)])
    texts = pl.Series("text", [" ".join(words[drawn.integers(0, 2000, 30)]) for _ in range(1500)])
    texts = texts.append(pl.Series(NASTY))
    vectors = embed_lexical(texts, model)
    tables = {
        "texts": texts.to_frame(),
        "lexical": model.to_table(),
        "topics": train_topics(vectors, texts.str.slice(0, 1)).to_table(),
    }
    for name, frame in tables.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")

    new, old = (
        digests(tmp_path, OPENBLAS_CORETYPE="Haswell"),
        digests(
            tmp_path, OPENBLAS_CORETYPE="Prescott", NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=""
        ),
    )

    assert new[0] == old[0]
    assert new[1] != old[1], "both ran the same kernels"
