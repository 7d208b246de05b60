"""Repeated lines through Dagster: counted over all parts, listed for each, and only what is new."""

from builders import Build, hashes, open_corpus, sentence, write_corpus, write_jsonl
from prelude import Any, Counter, Path, pl, pytest

from assets.deduped.repeated_asset import plan_repeated
from assets.deduped.repeats.repeated_lines import configs_of
from resources import exchange
from resources.run_reports import read_report
from resources.store.store import StoreError

HEADER = "Home | News | About this site"
FOOTER = "Printed on the best paper\nfor all the readers of it"
LINES = {"lines": {"min_count": 4}}
STAGES = (
    *("raw", "classifier", "filtered", "evaluation", "signatures", "band_index", "duplicates"),
    "repeated",
)
BOTH = LINES | {"paragraphs": {"min_count": 4}}


def page(number: int, *, header: str = HEADER, footer: str = FOOTER) -> dict[str, str]:
    return {"text": f"{header}\n\n{sentence(number)}\n\n{footer}"}


PART_BYTES = 1100  # a part for each file: files of less than a quarter would share one


def write_pages(folder: Path, **changes: Any) -> Any:
    """Prose in two files whose pages share a header and a footer; notes as they are."""
    config = write_corpus(folder, **{"part_bytes": PART_BYTES} | changes)
    write_jsonl(folder / "input/prose/a.jsonl", [page(i) for i in range(3)])
    write_jsonl(folder / "input/prose/b.jsonl", [page(i) for i in range(3, 5)])
    return open_corpus(config)


def find_repeated(corpus: Any, dagster_build: Build) -> dict[str, Any]:
    """Build up to `repeated`; its metadata for prose."""
    result = dagster_build(corpus, *STAGES)
    found = [event.materialization for event in result.get_asset_materialization_events()]
    return next(dict(each.metadata) for each in found if is_of_prose(each))


def is_of_prose(materialization: Any) -> bool:
    """Whether it is one of `repeated` for prose."""
    place = materialization.asset_key.to_user_string(), materialization.partition
    return place == ("repeated", "prose")


def tables(corpus: Any, kind: str, prefix: str = "") -> dict[str, list[tuple[Any, ...]]]:
    """Rows of the files of a kind, by part."""
    manifest = corpus.store.newest("repeated", "prose")
    found = {}
    for part in manifest.parts:
        file = part.file(kind)
        if file is not None and part.name.startswith(prefix):
            path = corpus.store.path_of(manifest, file)
            read = pl.read_parquet if path.suffix == ".parquet" else pl.read_ipc
            found[part.name] = read(path).rows()
    return found


def counts(corpus: Any, unit: str) -> dict[str, int]:
    """The repeated texts of a unit and their counts."""
    rows = [row for each in tables(corpus, unit, "total-").values() for row in each]
    return {text: count for _, text, count in rows}


def computed(corpus: Any) -> int:
    """Parts that the last run computed."""
    return int(read_report(corpus.store.root, "repeated", "prose").parts_computed)


def test_counts_are_over_all_parts_and_each_part_lists_its_own(
    tmp_path: Path, dagster_build: Build
) -> None:
    corpus = write_pages(tmp_path, dedup=BOTH)
    write_jsonl(tmp_path / "input/prose/c.jsonl", [{"text": sentence(9)}])

    metadata = find_repeated(corpus, dagster_build)

    first, second = FOOTER.split("\n")
    assert counts(corpus, "lines") == {HEADER: 5, first: 5, second: 5}
    assert counts(corpus, "paragraphs") == {HEADER: 5, FOOTER.replace("\n", " "): 5}
    listed = list(tables(corpus, "repeated").values())
    everything = [
        *(("lines", text) for text in sorted((HEADER, first, second))),
        *(("paragraphs", text) for text in sorted((HEADER, FOOTER.replace("\n", " ")))),
    ]
    assert sorted(listed) == [[], everything, everything]
    assert metadata["repeated_lines"].value == 3
    assert metadata["repeated_lines_chars"].value == 5 * len(HEADER + first + second)
    assert "| 5 | Home &#124; News" in Path(metadata["preview"].value).read_text()


def test_lines_of_copies_do_not_count(tmp_path: Path, build: Build) -> None:
    corpus = write_pages(tmp_path, dedup={"lines": {"min_count": 3}})
    write_jsonl(tmp_path / "input/prose/c.jsonl", [page(0), page(1), page(1)])

    build(corpus, *STAGES)

    assert counts(corpus, "lines")[HEADER] == 5
    stats = corpus.store.newest("repeated", "prose").stats
    assert (stats.rows_in, stats.rows_kept, stats.duplicates) == (5, 5, 0)


@pytest.mark.parametrize(("action", "count"), [("reject", 4), ("tag", 5)])
def test_lines_of_contaminated_documents_count_if_these_stay(
    tmp_path: Path, build: Build, action: str, count: int
) -> None:
    write_jsonl(tmp_path / "quiz.jsonl", [{"text": sentence(3)}])
    for each in ("tag", "reject", action):  # a change of what is done is noticed
        quiz = {"sets": [{"name": "quiz", "where": "quiz.jsonl"}], "action": each}
        corpus = write_pages(tmp_path, dedup=LINES | {"decontamination": quiz})
        build(corpus, *STAGES)

    assert counts(corpus, "lines")[HEADER] == count


def test_what_is_only_for_cutting_needs_no_new_lists(tmp_path: Path, build: Build) -> None:
    build(write_pages(tmp_path, dedup=LINES), *STAGES)

    stricter = write_pages(tmp_path, dedup={"lines": {"min_count": 4, "min_kept_share": 0.9}})
    longer = write_pages(tmp_path, dedup={"lines": {"min_count": 4, "min_chars": 30}})

    found = stricter.store.newest("repeated", "prose").config
    assert found == configs_of(stricter.settings.dedup)
    assert found != configs_of(longer.settings.dedup)


def test_a_second_run_computes_nothing_and_changes_no_byte(tmp_path: Path, build: Build) -> None:
    corpus = write_pages(tmp_path, dedup=BOTH)
    build(corpus, *STAGES)
    before = hashes(corpus.store.root)

    build(corpus, *STAGES)

    assert computed(corpus) == 0
    assert hashes(corpus.store.root) == before


def test_a_new_file_costs_its_own_counting_and_keeps_the_lists_of_others(
    tmp_path: Path, build: Build
) -> None:
    corpus = write_pages(tmp_path, dedup=LINES)
    build(corpus, *STAGES)
    before = hashes(corpus.store.root / "repeated")
    lists = tables(corpus, "repeated")

    write_jsonl(tmp_path / "input/prose/c.jsonl", [page(7, footer="another footer of the site")])
    build(corpus, *STAGES)

    after = hashes(corpus.store.root / "repeated")
    new = [name for name in after.keys() - before.keys() if name.endswith((".arrow", ".parquet"))]
    passes = Counter(Path(name).name.split("-")[0] for name in new)
    assert all(passes[name] == 1 for name in ("count", "select", "collect", "total"))
    assert len(new) == 4 + 3  # and a list of each part
    assert {name: tables(corpus, "repeated")[name] for name in lists} == lists
    assert counts(corpus, "lines")[HEADER] == 6


def test_prefixes_do_not_change_what_is_found(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for bits in (0, 4):
        monkeypatch.setattr(exchange, "prefix_bits_for", lambda *_, bits=bits: bits)
        corpus = write_pages(tmp_path / str(bits), dedup=BOTH)
        build(corpus, *STAGES)
        assert len(tables(corpus, "lines", "total-")) == 1 << bits
        found.append((counts(corpus, "lines"), tables(corpus, "repeated")))

    assert found[0] == found[1] and len(found[0][0]) == 3


def test_engine_does_not_change_a_byte(tmp_path: Path, build: Build) -> None:
    stores = []
    for name, engine in (("a", {"kind": "in_process"}), ("b", {"kind": "processes", "workers": 2})):
        corpus = write_pages(tmp_path / name, dedup=BOTH, engine=engine)
        build(corpus, *STAGES)
        stores.append(hashes(corpus.store.root / "repeated"))

    assert stores[0] == stores[1]


def test_without_a_config_nothing_is_counted(tmp_path: Path, build: Build) -> None:
    corpus = write_pages(tmp_path)

    build(corpus)

    assert not (corpus.store.root / "repeated").exists()


def test_clusters_of_other_parts_are_refused(tmp_path: Path, build: Build) -> None:
    corpus = write_pages(tmp_path, dedup=LINES)
    build(corpus, *STAGES)
    write_jsonl(tmp_path / "input/prose/c.jsonl", [page(7)])
    build(corpus, "raw", "filtered")

    with pytest.raises(StoreError, match=r"other documents than the newest filtered\[prose\]"):
        plan_repeated(corpus, "prose")
