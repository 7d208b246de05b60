"""Three nights of `corpus build` with `holdout`: no phase draws what is held out.

Every text has a number in all of its words, so that copies are known without `duplicates`.
"""

from collections.abc import Iterable

import yaml
from builders import deduped, open_corpus, sentence, write_corpus, write_jsonl
from command_line import start
from prelude import Any, Path, pl, pytest, re

from corpus_loader import CorpusLoader, LoaderOptions

pytestmark = pytest.mark.slow

WORDS = 60
SETTINGS = {
    "holdout": {"share": 0.2},
    "dedup": {"keep": ["longest"]},  # a longer copy takes the place of a document
    "phases": [
        {"name": "main", "weighting": "natural"},
        {"name": "late", "weights_at": {0.0: {"prose": 1}, 1.0: {"notes": 1}}, "tokens": 20_000},
    ],
}


def corpus_build(config: Path, *words: str) -> None:
    command = start(config, "pipeline_defs.commands.main", "build", *words)
    assert command.wait() == 0, (config.parent / "out.log").read_text()[-3000:]


def write_texts(config: Path, name: str, numbers: Iterable[int], end: str = "") -> None:
    texts = [{"text": sentence(number, WORDS) + end} for number in numbers]
    write_jsonl(config.parent / "input" / name, texts)


def change(config: Path, **changes: Any) -> None:
    content = yaml.safe_load(config.read_text()) | changes
    config.write_text(yaml.safe_dump(content, sort_keys=False))


def numbers_of(config: Path) -> dict[str, int]:
    """The number of the text of every document that `deduped` keeps, by id."""
    corpus, found = open_corpus(config), dict[str, int]()
    for source in corpus.settings.source_names():
        for doc_id, text in pl.concat(deduped(corpus, source, "doc_id", "text")).iter_rows():
            found[doc_id] = int(re.search(r"\d+", text)[0])  # type: ignore[index]
    return found


def drawn(config: Path, **what: Any) -> set[int]:
    """The numbers of the texts in all rows of a phase, or of validation."""
    options = LoaderOptions(with_documents=True)
    loader = CorpusLoader(config.parent / "store", batch_size=1, options=options, **what)
    documents = loader.samples(range(loader.split.epoch_samples)).documents
    assert documents is not None
    numbers = numbers_of(config)
    ids = {each.tobytes().hex() for each in documents.doc_ids} - {"0" * 32}
    return {numbers[doc_id] for doc_id in ids}


def read_night(config: Path) -> tuple[set[int], set[int]]:
    """What is held out, and what is trained on: a phase of one epoch draws all the rest."""
    held, trained = drawn(config, split="validation"), drawn(config, phase="main")
    assert held
    assert not held & trained
    assert held | trained == {*numbers_of(config).values()}
    assert drawn(config, phase="late") <= trained
    return held, trained


def test_what_is_held_out_is_never_trained_on_and_stays(tmp_path: Path) -> None:
    config = write_corpus(tmp_path, **SETTINGS)
    for name in ("prose/a", "prose/b", "notes/n"):
        (tmp_path / f"input/{name}.jsonl").unlink()
    write_texts(config, "prose/a.jsonl", range(200, 240))
    write_texts(config, "notes/n.jsonl", range(300, 330))
    corpus_build(config)
    first, trained = read_night(config)

    # Longer copies of all texts come to the other source and take their places; more is held out.
    write_texts(config, "notes/copies.jsonl", range(200, 240), " And so it was.")
    write_texts(config, "prose/copies.jsonl", range(300, 330), " And so it was.")
    write_texts(config, "prose/new.jsonl", range(400, 430))
    change(config, holdout={"share": 0.5})
    corpus_build(config)
    second, trained_then = read_night(config)
    assert trained <= trained_then
    assert first < second
    assert len(second - first) > 5

    # The documents that were decided first go, and copies come once more; no more is held out.
    (tmp_path / "input/prose/a.jsonl").unlink()
    (tmp_path / "input/notes/n.jsonl").unlink()
    write_texts(config, "notes/late.jsonl", sorted(first), " It came late.")
    write_texts(config, "prose/late.jsonl", range(500, 510))
    change(config, holdout={"share": 0})
    corpus_build(config, "--accept-shrink", "prose", "--accept-shrink", "notes")
    third, trained_last = read_night(config)
    assert third == second
    assert trained_last == trained_then | {*range(500, 510)}
