"""Documents that share much with a held-out one: literal n-grams, and a corpus over nights."""

from collections.abc import Sequence

from builders import Build, open_corpus, play, records, sentence, write_corpus
from prelude import Any, Path, pl, pytest, re

from assets.bucketed.asset import STAGE as BUCKETED
from assets.bucketed.bucketed_records import layout_of
from assets.bucketed.document_groups import shares_file
from assets.bucketed.leakage import (
    SKETCH_SIZE,
    find_candidates,
    first_occurrences,
    occurrences,
    sketch,
    worst_shares,
)
from assets.bucketed.leakage_asset import STAGE as LEAKAGE
from assets.deduped.asset import STAGE as DEDUPED
from assets.deduped.document_files import kept_documents, read_kept
from assets.stages import used_stages
from pipeline_defs.commands.look.trace import stage_lines
from pipeline_defs.commands.look.trace_document import trace_document
from pipeline_defs.commands.train.plan import plan_corpus, show
from resources.run_reports import read_report
from resources.store.mapped_files import map_arrow

pytestmark = pytest.mark.slow

PACKED = {"mode": "pack", "sequence_length": 64}


def words(name: str, count: int) -> str:
    return " ".join(f"{name}{i}" for i in range(count))


def documents(name: str, texts: Sequence[str], is_held: bool) -> pl.DataFrame:
    """Documents with the names a0, a1, ..."""
    ids = [f"{name}{row}" for row in range(len(texts))]
    return pl.DataFrame(
        {"doc_id": ids, "text": texts}, {"doc_id": pl.String, "text": pl.String}
    ).with_columns(is_held=pl.lit(is_held))


def shares(trained: Sequence[str], held: Sequence[str]) -> dict[int, float]:
    """The largest share of each candidate, by its row, as the stage computes it."""
    of_training, of_held = documents("", trained, False), documents("held", held, True)
    sketches = sketch(pl.concat([of_training, of_held]))
    held_ngrams = occurrences(0, sketches.filter("is_held"))
    known = first_occurrences(0, sketches, held_ngrams["hash"].unique())
    found = find_candidates(held_ngrams, [known])
    texts = of_training.filter(pl.col("doc_id").is_in(found["doc_id"].implode()))
    ngrams = occurrences(0, sketch(texts.with_columns(is_held=True)))
    known = first_occurrences(0, sketches, ngrams["hash"].unique())
    worst = worst_shares(ngrams, held_ngrams, [known])
    return {int(row): share for row, share in worst.select("doc_id", "share").iter_rows()}


def test_a_share_is_that_of_the_n_grams_of_the_document_for_training() -> None:
    held = words("a", 100)
    texts = [
        words("b", 100),  # nothing
        words("a", 12) + " " + words("b", 100),  # a word too few
        words("a", 32) + " " + words("b", 80),  # 20 of 100 n-grams
        words("A", 33) + ", " + words("b", 79),  # 21, in capitals
        words("b", 79) + " " + words("a", 33) + " " + words("a", 33),  # of 133, each once
        words("a", 60),
    ]
    found = shares(texts, [held])
    assert found == pytest.approx({2: 20 / 100, 3: 21 / 100, 4: 21 / 112, 5: 1.0})
    assert found[2] == 0.2


def test_a_text_of_fewer_than_13_words_is_one_n_gram() -> None:
    texts = [words("A", 7), words("a", 6), words("b", 12), words("a", 8), words("b", 13), "", "?"]
    assert shares(texts, [words("a", 7), words("b", 13)]) == {0: 1.0, 4: 1.0}


@pytest.mark.parametrize("length", [40, 400])
def test_n_grams_of_more_than_20_documents_do_not_count(length: int) -> None:
    licence = words("licence", 100)

    def texts(name: str, count: int) -> list[str]:
        return [f"{licence} {words(f'{name}{i}x', length)}" for i in range(count)]

    held, licence_share = texts("held", 2), (100 - 12) / (100 + length - 12)
    assert shares(texts("own", 18), held) == pytest.approx(dict.fromkeys(range(18), licence_share))
    assert shares(texts("own", 19), held) == {}
    framed = f"{licence} {words('held0x', length)} {words('other', 13)}"
    found = shares([*texts("own", 19), framed], held)
    # The licence and its last 12 n-grams, which `held0` has as well, count in no document.
    assert found == pytest.approx({19: length / (length + 13)})


def test_of_held_out_documents_that_are_alike_the_first_is_named() -> None:
    held = documents("held", [words("a", 60), words("b", 90), words("a", 60)], is_held=True)
    ngrams = occurrences(0, sketch(documents("", [words("a", 60)], is_held=True)))
    named = worst_shares(ngrams, occurrences(0, sketch(held)), [])
    assert named.rows() == [(0, "0", "held0", 1.0)]


def test_a_sketch_has_hashes_of_a_document_evenly_spaced_and_all_if_it_is_held_out() -> None:
    texts = [words("a", 200), words("b", 30), "", words("c", 200)]
    whole, found = (
        sketch(documents("d", texts, is_held).with_columns(is_held=pl.Series(of)))
        for is_held, of in ((True, [True] * 4), (False, [False, False, False, True]))
    )
    assert found["doc_id"].to_list() == ["d0", "d1", "d3"]
    assert found["hashes"].list.len().to_list() == [SKETCH_SIZE, 30 - 12, 200 - 12]
    evenly = [number * (200 - 12) // SKETCH_SIZE for number in range(SKETCH_SIZE)]
    assert found["hashes"][0].to_list() == whole["hashes"][0][evenly].to_list()
    assert found[1:].equals(whole[1:].with_columns(found[1:]["is_held"]))


def quoting(corpus: Any, number: int) -> dict[str, list[dict[str, str]]]:
    """A file of documents that each quote one of `prose` whole, and one that quotes none."""
    texts = [f"{sentence(i, 60)} and {sentence(900 + number + i, 20)}" for i in range(300, 330)]
    return {f"notes/q{number}.jsonl": records(*texts, sentence(800 + number, 60))}


def rejected(corpus: Any) -> dict[str, int]:
    """The documents of each source that are in no sequence."""
    manifests = {name: corpus.store.newest(BUCKETED, name) for name in ("prose", "notes")}
    return {
        name: manifest.stats.rejected.get("like_held_out", 0)
        for name, manifest in manifests.items()
    }


def drawn(corpus: Any) -> tuple[set[str], set[tuple[str, ...]]]:
    """The documents of all sequences of training, and the rows of validation."""
    training, validation = set[str](), set[tuple[str, ...]]()
    for source in ("prose", "notes"):
        manifest = corpus.store.newest(BUCKETED, source)
        names = layout_of(manifest).names
        for part in manifest.parts:
            file = corpus.store.file_of(manifest, part.file("sequences"))
            for bucket, spans in map_arrow(file.checked(), ["bucket", "spans"]).iter_rows():
                ids = tuple(span["doc_id"] for span in spans)
                if names[bucket].endswith("validation"):
                    validation.add(ids)
                else:
                    training |= set(ids)
    return training, validation


def left_out(corpus: Any) -> set[str]:
    found = pl.read_parquet(shares_file(corpus, corpus.store.newest(LEAKAGE, "all")))
    assert (found["share"] > 0.2).to_list() == found["is_left_out"].to_list()
    return set(found.filter("is_left_out")["doc_id"])


def texts_of(corpus: Any) -> dict[str, str]:
    """The documents that are tokenized, by their ids."""
    manifests = [corpus.store.newest(DEDUPED, name) for name in ("prose", "notes")]
    documents = [
        read_kept(kept_documents(corpus.store, manifest, part), ["doc_id", "text"])
        for manifest in manifests
        for part in manifest.parts
    ]
    return dict(pl.concat(documents).iter_rows())


def worst_of(doc_id: str, held: set[str], texts: dict[str, str]) -> float:
    """The largest share of a document's n-grams in one of those held out, from their words."""
    ngrams = ngrams_of(texts[doc_id])
    return max(len(ngrams & ngrams_of(texts[each])) / len(ngrams) for each in held)


def ngrams_of(text: str) -> set[tuple[str, ...]]:
    split = re.findall(r"\w+", text.lower())
    return {tuple(split[start : start + 13]) for start in range(len(split) - 12)}


def test_quoting_documents_are_not_drawn_night_after_night(
    tmp_path: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = open_corpus(write_corpus(tmp_path, holdout={"share": 0.3}, buckets=PACKED))
    stages = used_stages(corpus.settings)
    play(corpus, {"prose/p.jsonl": records(*(sentence(i, 60) for i in range(300, 330)))})
    build(corpus, *stages)
    assert rejected(corpus)["notes"] == 0
    validation = drawn(corpus)[1]

    gone = left_out(corpus)
    for number in (0, 40):
        play(corpus, quoting(corpus, number))
        build(corpus, *stages)
        assert gone < left_out(corpus)
        gone = left_out(corpus)
        training, rows = drawn(corpus)
        texts, held = texts_of(corpus), {doc_id for row in rows for doc_id in row}
        assert training == {*texts} - held - gone
        assert gone == {doc_id for doc_id in training | gone if worst_of(doc_id, held, texts) > 0.2}
        assert {doc_id for row in validation for doc_id in row} <= {d for row in rows for d in row}
    assert rejected(corpus)["notes"] > 5
    build(corpus, "leakage", "bucketed")
    assert read_report(corpus.store.root, "leakage", "all").parts_computed == 0
    traced = trace_document(corpus, min(gone))
    assert traced.sharded == []
    line = dict(stage_lines(traced))["leakage"]
    assert re.search(r"of its 13-grams are in the held-out \w+: in no sequence for it", line)
    report = plan_corpus(corpus, ["main"])
    show(report)
    said = capsys.readouterr().out
    assert f"left out for more than 20%: {rejected(corpus)['notes']} of " in said
    assert "notes: worst overlap of a training document with a held-out one: 0.0% of" in said
    [line, *_] = [text for text in report.warnings if "'notes'" in text]
    assert "of its training documents are left out for what they share with held-out" in line
