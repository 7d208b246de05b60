"""The asset `disclosure`: the public summary of training content, after all phases.

It is there if `disclosure.provider` is set, in no fingerprint, and its errors fail no run.
"""

from importlib import import_module

import dagster as dg

from assets.mixed.mixed_records import MIXED
from resources.corpus import Corpus
from resources.settings.pipeline import Settings
from resources.source_faults import DISCLOSURE
from resources.store.preview_files import REPORT, preview_path, write_preview
from resources.store.scratch import place_of


def disclosed(settings: Settings) -> list[str]:
    """Return the name of the asset, none if nobody says who discloses."""
    return [DISCLOSURE] if settings.disclosure.provider is not None else []


def disclosure_asset(corpus: Corpus) -> dg.AssetsDefinition:
    """Return the asset over a corpus."""

    @dg.asset(
        name=DISCLOSURE,
        description="The public summary of training content, AI Act, Article 53(1)(d). "
        "`corpus disclose` writes it elsewhere, and other forms.",
        deps=[MIXED.name],
        group_name="train",
        kinds={"markdown"},
        owners=["team:data"],
        tags={"stage": DISCLOSURE},
        output_required=False,
    )
    def write(context: dg.AssetExecutionContext):  # type: ignore[no-untyped-def]
        path = preview_path(corpus.store.root, REPORT, DISCLOSURE)
        try:  # commands import this package
            forms = import_module("pipeline_defs.commands.share.disclose")
            facts = forms.gather(corpus)
            write_preview(path, forms.render("eu", facts))
        except Exception as error:  # noqa: BLE001 - the corpus is built, whatever it is
            context.log.warning(f"The summary was not written: {error}")
            return
        unknown = sum(fact.value is None for fact in facts.facts)
        place = dg.MetadataValue.path(place_of(path))
        yield dg.MaterializeResult(
            metadata={"path": place, "unknown_facts": unknown, "state": str(facts.state)}
        )

    return write
