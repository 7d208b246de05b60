"""The assets that follow all phases: `corpus_report`, the corpus as one page, and `disclosure`.

They are in no fingerprint, and their errors fail no run.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import dagster as dg

from assets.mixed.mixed_records import MIXED
from resources.corpus import Corpus
from resources.settings.pipeline import Settings
from resources.source_faults import CORPUS_REPORT, DISCLOSURE
from resources.store.preview_files import PAGE_ADDRESS, REPORT, preview_path, write_preview
from resources.store.scratch import place_of


def corpus_report_asset(corpus: Corpus) -> dg.AssetsDefinition:
    """Return the asset of the report over a corpus."""

    def write() -> dict[str, Any]:
        place = import_module("pipeline_defs.commands.look.update_report").update_report(corpus)
        value = dg.MetadataValue
        return {"page": value.url(PAGE_ADDRESS), "path": value.path(place)}

    return written_last(
        CORPUS_REPORT,
        "One page: what was removed and why, with excerpts, duplicates, the mix, and what changed. "
        f"`corpus ui` shows it: [open it]({PAGE_ADDRESS}). `corpus report` writes it elsewhere.",
        write,
    )


def disclosed(settings: Settings) -> list[str]:
    """Return the name of the asset of the summary; none if nobody says who discloses."""
    return [DISCLOSURE] if settings.disclosure.provider is not None else []


def disclosure_asset(corpus: Corpus) -> dg.AssetsDefinition:
    """Return the asset of the summary over a corpus."""

    def write() -> dict[str, Any]:
        forms = import_module("pipeline_defs.commands.share.disclose")
        path, facts = preview_path(corpus.store.root, REPORT, DISCLOSURE), forms.gather(corpus)
        write_preview(path, forms.render("eu", facts))
        unknown = sum(fact.value is None for fact in facts.facts)
        place = dg.MetadataValue.path(place_of(path))
        return {"path": place, "unknown_facts": unknown, "state": facts.state}

    return written_last(
        DISCLOSURE,
        "The public summary of training content for the EU's AI Act, Article 53(1)(d). `corpus "
        "disclose` writes it elsewhere, and other forms.",
        write,
    )


def written_last(
    name: str, description: str, write: Callable[[], Mapping[str, Any]]
) -> dg.AssetsDefinition:
    """Return an asset that is written after all phases; `write` returns its metadata."""

    @dg.asset(
        name=name,
        description=description,
        deps=[MIXED.name],
        group_name="train",
        kinds={"html" if name == CORPUS_REPORT else "markdown"},
        owners=["team:data"],
        tags={"stage": name},
        required_resource_keys={"corpus"},  # by which the process of a step is one of its run
        output_required=False,
    )
    def written(context: dg.AssetExecutionContext):  # type: ignore[no-untyped-def]
        try:  # commands import this package
            metadata = write()
        except Exception as error:  # noqa: BLE001 - the corpus is built, whatever it is
            context.log.warning(f"{name} was not written: {error!r}")
            return
        yield dg.MaterializeResult(metadata=metadata)

    return written
