"""`corpus states diff A B`: two states of a source, or of all sources, side by side.

Parts that both states name are not read. Of the others the ids, the fates and hashes of the texts
are read, a part at a time; what is the same in both is dropped before the next part is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

from assets.deduped.document_files import kept_documents, read_kept
from corpus_loader.places.stage_names import DEDUPED, FILTERED, RAW
from pipeline_defs.commands.answers import nested, print_frame
from pipeline_defs.commands.states.state_chain import (
    NEWEST,
    SourceState,
    check_stage,
    code_changes,
    config_changes,
    in_both,
    state_of,
    value_text,
)
from pipeline_defs.commands.terminal import Json, Natural, print_json, say
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.store.kept_manifests import KeptManifests
from resources.store.named_states import read_tags
from resources.store.records import Manifest, PartRecord, Stats
from resources.store.store import Store

COUNTS = ("rows_in", "rows_kept", "duplicates", "quarantined", "tokens", "bytes")
KEPT = "kept"
ABSENT = "not in the input"
SCHEMA = {"doc_id": pl.String, "fate": pl.String, "text": pl.UInt64, "part": pl.String}
NUMBERS = {"stage": pl.String, "number": pl.String, "before": pl.Int64, "now": pl.Int64}
SAMPLES = pl.List(pl.Struct({"doc_id": pl.String, "text": pl.String}))
FATES: dict[str, Any] = dict.fromkeys(("before", "after"), pl.String)
CHANGES = FATES | {"documents": pl.Int64, "samples": SAMPLES}
SAMPLE_CHARS = 160


def diff(
    before: Annotated[str, Parameter(help="State: a number of `corpus states history`, or a tag.")],
    after: Annotated[str, Parameter(help="Other state; the newest without.")] = NEWEST,
    /,
    *,
    source: Annotated[
        str | None, Parameter(help="Source; without, all that two tags have.")
    ] = None,
    stage: Annotated[
        str | None, Parameter(help="Stage whose numbers are meant; the last one without.")
    ] = None,
    samples: Annotated[Natural, Parameter(help="Documents to show of each change.")] = 3,
    json: Json = False,
) -> int:
    """Print what differs between two states."""
    check_stage(stage)
    corpus = load_corpus()
    names = [source] if source is not None else sources_of(corpus, before, after)
    found = [difference(corpus, name, (before, after), stage, samples) for name in names]
    if json:
        print_json([*map(as_json, found)])
    else:
        for each in found:
            show(each)
    return 0


def sources_of(corpus: Corpus, before: str, after: str) -> list[str]:
    """Return the sources that both tags have; UsageError for a state that needs a source."""
    tags = read_tags(corpus.store.root)
    wanted = [tags[name] for name in (before, after) if name in tags]
    if len(wanted) < 2 - (after == NEWEST):
        raise UsageError(
            f"Without --source both states are tags; there are: {', '.join(tags) or 'none'}. "
            "For numbers name the source: corpus states diff 3 5 --source web"
        )
    in_tags = [{each.partition for each in tag.manifests if each.stage == RAW} for tag in wanted]
    return [name for name in corpus.settings.source_names() if all(name in of for of in in_tags)]


def difference(
    corpus: Corpus, source: str, names: tuple[str, str], stage: str | None, samples: int
) -> dict[str, Any]:
    """Compare two states of a source: their documents, numbers, config keys and code versions.

    `documents` is None if one of the states no longer has the stages that tell their fates.
    """
    kept = KeptManifests(corpus.store, source)
    before, after = (state_of(kept, name, stage) for name in names)
    is_told = all(state.manifest(FILTERED) for state in (before, after))
    return {
        **{"source": source, "before": before.name, "after": after.name},
        "documents": document_changes(corpus.store, before, after, samples) if is_told else None,
        "stages": number_changes(before, after),
        "config": config_changes(before, after),
        "code": code_changes(before, after),
    }


def as_json(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a difference for programs, numbers as (before, now)."""
    pairs = found["stages"].select("stage", "number", pl.concat_list("before", "now"))
    stages = nested(pairs, "stage", "number").items()
    told = found["documents"]
    documents = told and told | {"changes": told["changes"].to_dicts()}
    numbers = [{"stage": stage, "numbers": of_stage} for stage, of_stage in stages]
    return {**found, "documents": documents, "stages": numbers}


def number_changes(before: SourceState, after: SourceState) -> pl.DataFrame:
    """Return the numbers of each stage that differ between two states, and by how much."""
    rows: list[tuple[str, str, int, int]] = []
    for name, then, now in in_both(before, after):
        old, new = counts_of(then.stats), counts_of(now.stats)
        counts = dict.fromkeys((*old, *new))
        rows += ((name, count, old.get(count, 0), new.get(count, 0)) for count in counts)
    change = pl.col("now") - pl.col("before")
    return pl.DataFrame(rows, NUMBERS, orient="row").filter(change != 0).with_columns(change=change)


def counts_of(stats: Stats[Any]) -> dict[str, int]:
    """Return the counts of a manifest, and the rejected rows by reason."""
    rejected = {f"rejected: {reason}": count for reason, count in stats.rejected.items()}
    return {name: getattr(stats, name) for name in COUNTS} | rejected


def document_changes(
    store: Store, before: SourceState, after: SourceState, num_samples: int
) -> dict[str, Any]:
    """Return how documents of a source changed, most often first, and how many parts were read."""
    then, now = part_states(before), part_states(after)
    names = sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
    nothing = pl.DataFrame(schema=SCHEMA)
    left = [side_by_side(nothing, nothing)]
    for name in names:
        left.append(side_by_side(*(fates_of(store, state, name) for state in (before, after))))
    rows = rejoined(pl.concat(left))
    changes = [
        change_of(store, (before, after), (str(fate), str(fate_now)), group, num_samples)
        for (fate, fate_now), group in rows.group_by("fate", "fate_now")
    ]
    table = pl.DataFrame(changes, CHANGES, orient="row")
    ordered = table.sort("documents", "before", "after", descending=[True, False, False])
    num_alike = len(then.keys() & now.keys() - {*names})
    return {"changes": ordered, "parts_read": len(names), "parts_alike": num_alike}


def part_states(state: SourceState) -> dict[str, tuple[str, str]]:
    """Return the fingerprints of each part of `filtered` and of `deduped`, by its name."""
    found: dict[str, tuple[str, str]] = {}
    filtered, deduped = state.manifest(FILTERED), state.manifest(DEDUPED)
    for part in filtered.parts if filtered else ():
        found[part.name] = part.fingerprint, ""
    for part in deduped.parts if deduped else ():
        found[part.name] = found.get(part.name, ("", ""))[0], part.fingerprint
    return found


def side_by_side(then: pl.DataFrame, now: pl.DataFrame) -> pl.DataFrame:
    """Return the documents that are not the same in two tables of fates."""
    rows = then.join(now, on="doc_id", how="full", coalesce=True, suffix="_now")
    return rows.filter(
        pl.col("fate").ne_missing(pl.col("fate_now"))
        | pl.col("text").ne_missing(pl.col("text_now"))
    )


def rejoined(rows: pl.DataFrame) -> pl.DataFrame:
    """Join documents that went from one part to another; leave out what is kept in neither."""
    then = rows.filter(pl.col("fate").is_not_null()).select(list(SCHEMA))
    later = {f"{name}_now": name for name in SCHEMA if name != "doc_id"}
    now = rows.filter(pl.col("fate_now").is_not_null()).select("doc_id", *later).rename(later)
    return (
        side_by_side(then, now)
        .with_columns(pl.col("fate", "fate_now").fill_null(ABSENT))
        .filter((pl.col("fate") == KEPT) | (pl.col("fate_now") == KEPT))
    )


def fates_of(store: Store, state: SourceState, name: str) -> pl.DataFrame:
    """Return what became of every document of a part: a row each, with the columns `SCHEMA`."""
    filtered, deduped = state.manifest(FILTERED), state.manifest(DEDUPED)
    of_filter, of_dedup = part_named(filtered, name), part_named(deduped, name)
    if filtered is None or of_filter is None:
        return pl.DataFrame(schema=SCHEMA)
    decisions = pl.read_parquet(
        store.part_file(filtered, of_filter, "decisions").checked(), columns=["doc_id", "reasons"]
    )
    last = (filtered, of_filter) if deduped is None or of_dedup is None else (deduped, of_dedup)
    texts = read_kept(kept_documents(store, *last), ["doc_id", "text"])
    kept = texts.select("doc_id", text=pl.col("text").hash(), is_kept=pl.lit(value=True))
    rows = decisions.join(kept, on="doc_id", how="left").join(
        removals_of(store, *last), on="doc_id", how="left"
    )
    rejected = "rejected: " + pl.col("reasons").list.first()
    removed = "removed: " + pl.col("step").fill_null("duplicate")
    fate = pl.when("is_kept").then(pl.lit(KEPT)).otherwise(pl.coalesce(rejected, removed))
    return rows.select("doc_id", fate.alias("fate"), "text", part=pl.lit(name))


def removals_of(store: Store, manifest: Manifest, part: PartRecord) -> pl.DataFrame:
    """Return why `deduped` removed documents that are no duplicates: doc_id, step."""
    found = [pl.DataFrame(schema={"doc_id": pl.String, "step": pl.String})]
    if part.file("contamination") is not None and manifest.stage == DEDUPED:
        hits = pl.read_parquet(store.part_file(manifest, part, "contamination").checked())
        ids = hits.filter("is_contaminated").select("doc_id").unique()
        found.append(ids.with_columns(step=pl.lit("contaminated")))
    if part.file("changes") is not None:
        changes = pl.read_parquet(store.part_file(manifest, part, "changes").checked())
        found.append(changes.filter("is_rejected").select("doc_id", "step"))
    return pl.concat(found).unique("doc_id", keep="first", maintain_order=True)


def part_named(manifest: Manifest | None, name: str) -> PartRecord | None:
    """Return the part of a manifest with a name, None if it has none."""
    return next((part for part in manifest.parts if part.name == name), None) if manifest else None


def change_of(
    store: Store,
    states: tuple[SourceState, SourceState],
    fates: tuple[str, str],
    rows: pl.DataFrame,
    num_samples: int,
) -> tuple[str, str, int, list[dict[str, str]]]:
    """Return a row of CHANGES of a group of documents, with texts of the first few by id."""
    state, part = (states[1], "part_now") if fates[1] == KEPT else (states[0], "part")
    first = rows.sort("doc_id").head(num_samples)
    manifest = state.manifest(DEDUPED) or state.manifest(FILTERED)
    assert manifest is not None, "a document of it is kept"
    samples = []
    for doc_id, name in first.select("doc_id", part).iter_rows():
        found = part_named(manifest, name)
        assert found is not None, f"{name} was read"
        texts = read_kept(kept_documents(store, manifest, found), ["doc_id", "text"])
        text = texts.filter(pl.col("doc_id") == doc_id)["text"].str.slice(0, SAMPLE_CHARS)
        samples.append({"doc_id": doc_id, "text": text[0]})
    return *fates, len(rows), samples


def show(found: Mapping[str, Any]) -> None:
    """Print a difference for people."""
    say("{source}: from {before} to {after}".format_map(found))
    show_documents(found["documents"])
    settings = [(key, *map(value_text, pair)) for key, pair in found["config"].items()]
    settings += [(f"{stage}: code version", *pair) for stage, pair in found["code"].items()]
    print_frame("numbers", found["stages"])
    print_frame("config and code", pl.DataFrame(settings, ("key", "before", "now"), orient="row"))
    if found["stages"].is_empty() and not settings:
        say("Numbers, config and code are the same.")


def show_documents(documents: Mapping[str, Any] | None) -> None:
    """Print the documents that came, went or changed."""
    if documents is None:
        say("Documents are not compared: `filtered` of a state is no longer kept.")
        return
    for before, after, number, samples in documents["changes"].iter_rows():
        what = f"{before} -> {after}" if before != after else "another text"
        sign = "~" if before == after else "+" if after == KEPT else "-"
        say(f"{sign} {number:,} documents: {what}")
        say(*(f"    {sample['doc_id']} {sample['text']}" for sample in samples))
    if documents["changes"].is_empty():
        say("The same documents are kept.")
    alike, read = documents["parts_alike"], documents["parts_read"]
    say(f"{read:,} parts were read; {alike:,} are the same in both.")
