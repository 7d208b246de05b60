"""The asset `corpus_report`: the corpus as one page, after all phases.

It is in no fingerprint, and its errors fail no run.
"""

from importlib import import_module

import dagster as dg

from assets.mixed.mixed_records import MIXED
from resources.corpus import Corpus
from resources.source_faults import CORPUS_REPORT
from resources.store.preview_files import PAGE_ADDRESS


def corpus_report_asset(corpus: Corpus) -> dg.AssetsDefinition:
    """Return the asset over a corpus."""

    @dg.asset(
        name=CORPUS_REPORT,
        description="One page: what was removed and why, with excerpts, duplicates, the mix, and "
        "what changed. `corpus ui` shows it, `corpus report` writes it elsewhere.",
        deps=[MIXED.name],
        group_name="train",
        kinds={"html"},
        owners=["team:data"],
        tags={"stage": CORPUS_REPORT},
        output_required=False,
    )
    def write(context: dg.AssetExecutionContext):  # type: ignore[no-untyped-def]
        try:  # commands import this package
            place = import_module("pipeline_defs.commands.look.report").write_report(corpus)
        except Exception as error:  # noqa: BLE001 - the corpus is built, whatever it is
            context.log.warning(f"The report was not written: {error!r}")
            return
        value = dg.MetadataValue
        yield dg.MaterializeResult(
            metadata={"page": value.url(PAGE_ADDRESS), "path": value.path(place)}
        )

    return write
