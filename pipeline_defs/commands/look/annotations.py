"""`corpus annotations`: what annotators say of documents, and what another condition would drop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

from assets.annotated.annotated_records import ANNOTATED, ANNOTATION_MODELS, ANNOTATIONS
from assets.annotated.model_files import read_reports
from corpus_loader.places.stage_names import TOKENIZED
from pipeline_defs.commands.answers import nested, print_frame
from pipeline_defs.commands.published_documents import newest_part, path_of
from pipeline_defs.commands.rules.filtered_files import pick_sources
from pipeline_defs.commands.terminal import Json, print_json, say
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, check_name
from resources.settings.annotations import Annotator, TopicsAnnotator
from resources.settings.conditions import check_condition, check_rows, is_met
from resources.tasks import GLOBAL

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST_LABELS = 20  # of a source and column, the most frequent


def show_annotations(
    *,
    annotator: Annotated[str | None, Parameter(help="Only this annotator (default: all).")] = None,
    source: Annotated[tuple[str, ...], Parameter(help="Only these sources (default: all).")] = (),
    drop: Annotated[
        str | None,
        Parameter(help="Count what this condition would drop, such as 'score < 3'."),
    ] = None,
    renew: Annotated[
        bool,
        Parameter(help="Find topics and train classifiers again, on today's documents and labels."),
    ] = False,
    json: Json = False,
) -> int:
    """Print the spread of numbers, the frequent labels, and the documents that are dropped."""
    corpus = load_corpus()
    if renew:
        return renew_models(corpus)
    known = {each.name: each for each in corpus.settings.annotations}
    if not known:
        raise UsageError(f"{corpus.config} has no `annotations` (docs/annotations.md).")
    if annotator is not None:
        check_name("annotator", annotator, [*known])
    chosen = [known[annotator]] if annotator else [*known.values()]
    if drop is not None and len(chosen) > 1:
        raise UsageError(f"--drop is of one annotator: give --annotator, of {', '.join(known)}")
    if drop is not None:
        try:
            check_condition(drop, chosen[0].given_columns)
            check_rows(drop, chosen[0].given_columns)
        except ValueError as error:
            raise UsageError(f"--drop: {error}") from None
    sources = pick_sources(corpus, [*source] or None)
    tables = [
        (name, each, table)
        for each in chosen
        for name in sources
        if each.annotates(name) and (table := annotations_of(corpus, name, each)) is not None
    ]
    frames = {
        "numbers": pl.DataFrame([*numbers(tables)]),
        "labels": pl.DataFrame([*labels(tables)]),
        "dropped": pl.DataFrame([*dropped(tables, drop)]),
        "classifiers": pl.DataFrame([*classifiers(corpus, chosen)]),
    }
    if json:
        print_json({name: nested(frame) for name, frame in frames.items()})
    elif not tables:
        say("No document is annotated yet. Run: corpus build")
    else:
        for name, frame in frames.items():
            print_frame(name, frame)
    return int(not tables)


Tables = Sequence[tuple[str, Annotator, pl.DataFrame]]  # of a source and annotator


def annotations_of(corpus: Corpus, source: str, annotator: Annotator) -> pl.DataFrame | None:
    """Return what an annotator says of a source's documents, and their tokens; None if nothing.

    Columns are doc_id, those of the annotator, and `tokens`: UInt32, null before they are encoded.
    """
    manifest = corpus.store.newest_or_none(ANNOTATED, source)
    found = []
    for part in manifest.parts if manifest else ():
        numbers = part.stats.numbers
        if manifest is None or numbers.annotator != annotator.name:
            continue
        said = pl.read_parquet(path_of(corpus, manifest, part, ANNOTATIONS))
        encoded = pl.DataFrame(schema={"doc_id": pl.String, "tokens": pl.UInt32})
        if place := newest_part(corpus, TOKENIZED, source, numbers.part):
            tokens = pl.scan_ipc(path_of(corpus, *place, "tokens"))
            encoded = tokens.select("doc_id", pl.col("tokens").list.len()).collect()
        found.append(said.join(encoded, on="doc_id", how="left"))
    return pl.concat(found) if found else None


def numbers(tables: Tables) -> Iterator[dict[str, Any]]:
    """Yield the spread of each number of a source."""
    for source, annotator, table in tables:
        for name in (n for n, kind in annotator.given_columns.items() if kind == "number"):
            spread = {f"{q:.0%}": table[name].quantile(q, "nearest") for q in QUANTILES}
            yield {
                **{"source": source, "column": f"{annotator.name}.{name}"},
                **{"documents": table.height, "known": table[name].count()},
                **spread,
            }


def labels(tables: Tables) -> Iterator[dict[str, Any]]:
    """Yield the most frequent values of each label of a source, with a document that has it.

    Of a topic it is the one that is nearest to the topic's centre.
    """
    for source, annotator, table in tables:
        for name in (n for n, kind in annotator.given_columns.items() if kind == "label"):
            nearest = "distance" if isinstance(annotator, TopicsAnnotator) else "doc_id"
            counts = table.drop_nulls(name).sort(nearest, "doc_id").group_by(name)
            counted = counts.agg(documents=pl.len(), example=pl.col("doc_id").first())
            ordered = counted.sort("documents", name, descending=[True, False])[:MOST_LABELS]
            for label, documents, example in ordered.iter_rows():
                yield {
                    **{"source": source, "column": f"{annotator.name}.{name}", "label": label},
                    **{"documents": documents, "share": documents / table.height},
                    "example": example,
                }


def dropped(tables: Tables, drop: str | None) -> Iterator[dict[str, Any]]:
    """Yield what the condition of the config drops of each source, and another one, if any."""
    for source, annotator, table in tables:
        conditions = {"now": annotator.drop, "then": drop}
        for name, condition in conditions.items():
            if condition is None:
                continue
            rows = table.filter(is_met(table, condition))
            tokens = int(table["tokens"].sum())
            yield {
                **{"source": source, "annotator": annotator.name, "when": name},
                **{"condition": condition, "documents": rows.height},
                "documents_share": rows.height / max(1, table.height),
                **{"tokens": int(rows["tokens"].sum())},
                "tokens_share": int(rows["tokens"].sum()) / max(1, tokens),
            }


def classifiers(corpus: Corpus, annotators: Sequence[Annotator]) -> Iterator[dict[str, Any]]:
    """Yield what each classifier says of the examples that are held out, and what it warns of."""
    manifest = corpus.store.newest_or_none(ANNOTATION_MODELS, GLOBAL)
    reports = read_reports(corpus, manifest) if manifest else {}
    for name in (each.name for each in annotators if each.name in reports):
        measures, warnings = reports[name].measures, reports[name].warnings
        yield {
            **{"annotator": name, "auc": measures.auc},
            **{"held_out_good": measures.n_good, "held_out_bad": measures.n_bad},
            "warnings": "; ".join(warnings),
        }


def renew_models(corpus: Corpus) -> int:
    """Train vectors, topics and classifiers on today's documents; return the exit code."""
    from assets.annotated.models_asset import RENEW
    from pipeline_defs.commands.build.dagster_commands import renew
    from resources.dagster_home import prepare_home

    if not (corpus.settings.topics or corpus.settings.classifying):
        raise UsageError(f"{corpus.config} has no annotator with `kind: topics` or `classify`.")
    prepare_home(corpus.store.root)
    code = renew(corpus.store.root, ANNOTATION_MODELS, RENEW)
    if not code:
        say("`corpus build` annotates all documents again.")
    return code
