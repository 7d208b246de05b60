"""The stage `held_out` over nights of documents that come and go, against a build from nothing."""

from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
import yaml
from builders import Build, open_corpus, sentence, write_corpus, write_jsonl

from assets.bucketed.held_out import is_below
from assets.bucketed.held_out_asset import HELD_OUT
from assets.deduped.duplicates_asset import DUPLICATES
from pipeline_defs.commands.main import main
from resources.run_reports import read_report

STAGES = ("raw", "filtered", "signatures", "band_index", "duplicates", "held_out")
SHARE = 0.4
Night = dict[str, list[dict[str, Any]] | None]  # what is written to each file; None: it is deleted


def text(number: int, edits: int = 0) -> str:
    """A text of 60 words that no other number gives; `edits` replaces words at its end."""
    words = sentence(number, 60).split()
    return " ".join([*words[: len(words) - edits], *(f"edit{number}x{i}" for i in range(edits))])


def records(*texts: str) -> list[dict[str, Any]]:
    return [{"text": each} for each in texts]


def play(corpus: Any, night: Night) -> None:
    """Write and delete the input files of a night."""
    for name, content in night.items():
        path = corpus.config.parent / "input" / name
        if content is None:
            path.unlink()
        else:
            write_jsonl(path, content)


def held(folder: Path, **changes: Any) -> Any:
    """The small corpus, not built yet, of which 40 % are held out."""
    return open_corpus(write_corpus(folder, **{"holdout": {"share": SHARE}} | changes))


def table(corpus: Any, stage: Any, kind: str, columns: list[str]) -> pl.DataFrame:
    manifest = corpus.store.newest(stage, "all")
    files = [corpus.store.path_of(manifest, f) for p in manifest.parts if (f := p.file(kind))]
    return pl.concat([pl.read_parquet(file, columns=columns) for file in files])


def decisions(corpus: Any) -> dict[str, bool]:
    return dict(table(corpus, HELD_OUT, "decisions", ["doc_id", "is_held"]).iter_rows())


def clusters(corpus: Any) -> dict[str, list[str]]:
    """The documents of each cluster."""
    rows = table(corpus, DUPLICATES, "clusters", ["cluster_id", "doc_id"])
    return dict(rows.group_by("cluster_id").agg("doc_id").iter_rows())


def check_rule(corpus: Any, before: dict[str, bool]) -> dict[str, bool]:
    """Compare all decisions with the rule, document by document; return them."""
    found = decisions(corpus)
    of_cluster = {doc_id: ids for ids in clusters(corpus).values() for doc_id in ids}
    for doc_id, is_held in found.items():
        ids = of_cluster.get(doc_id, [doc_id])
        old = {before[each] for each in ids if each in before}
        by_first = bool(is_below(pl.Series([min(ids)]), SHARE)[0])
        assert is_held == before.get(doc_id, True in old if old else by_first)
    return found


def random_nights(seed: int) -> list[Night]:
    """Three nights of files with copies and edited copies of few texts; some change, some go."""
    random = Random(seed)
    nights: list[Night] = []
    files: list[str] = []
    for number in range(3):
        night: Night = {}
        for index in range(random.randint(1, 2)):
            name = f"{random.choice(('prose', 'notes'))}/n{9 - number}{index}.jsonl"
            picked = [text(random.randint(300, 306), random.choice((0, 0, 1, 2))) for _ in range(6)]
            night[name] = records(*picked)
        if files and random.random() < 0.7:
            night[random.choice(files)] = random.choice((None, records(text(301), text(999))))
        files = sorted({*files, *night} - {name for name, c in night.items() if c is None})
        nights.append(night)
    return nights


def export_ledger(corpus: Any, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOKENMILL_CONFIG", str(corpus.config))
        capsys.readouterr()
        assert main(["duplicates", "ledger"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "dedup",
    [{}, {"keep": ["longest"]}, {"clusters": "components", "keep": ["cleanest"]}],
    ids=["default", "longest", "components"],
)
def test_nights_keep_what_is_decided_and_end_as_a_build_from_nothing(
    tmp_path: Path,
    build: Build,
    capsys: pytest.CaptureFixture[str],
    seed: int,
    dedup: dict[str, Any],
) -> None:
    nightly = held(tmp_path / "nightly", dedup=dedup, part_bytes=2048)
    build(nightly, *STAGES)
    found = check_rule(nightly, {})
    for night in random_nights(seed):
        play(nightly, night)
        build(nightly, *STAGES)
        found = check_rule(nightly, found)
    build(nightly, "held_out")
    assert read_report(nightly.store.root, "held_out", "all").parts_computed == 0

    (tmp_path / "nightly" / "ledger.json").write_text(export_ledger(nightly, capsys))
    config = yaml.safe_load(nightly.config.read_text())
    config["dedup"]["ledger"], config["store"] = "ledger.json", "from_nothing"
    nightly.config.write_text(yaml.safe_dump(config, sort_keys=False))
    whole = open_corpus(nightly.config, tmp_path / "from_nothing")
    build(whole, *STAGES)

    assert decisions(whole) == found
    assert published(whole) == published(nightly)


def published(corpus: Any) -> dict[str, str]:
    """The hashes of the files that the newest manifest names."""
    return {
        file.path: file.sha256
        for part in corpus.store.newest(HELD_OUT, "all").parts
        for file in part.files
    }
