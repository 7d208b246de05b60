"""`corpus rules renew`: measure again what percentiles of quality scores refer to.

It materializes the asset `quality_scale` with the run config that asks for it, on the raw documents
of today. The next build filters these sources again.
"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from assets.filtered.filtered_records import QUALITY_SCALE
from assets.filtered.quality_scale_asset import RENEW
from pipeline_defs.commands.build.build import check_names
from pipeline_defs.commands.terminal import say
from pipeline_defs.load_corpus import load_corpus
from resources.dagster_home import prepare_home
from resources.errors import UsageError


def renew(
    *sources: Annotated[str, Parameter(help="Sources; without, all that have percentiles.")],
) -> int:
    """Measure some quality scales again; the exit code is that of the first run that fails."""
    corpus = load_corpus()
    names = corpus.settings.source_names()
    ranked = [name for name in names if corpus.settings.filters_for(name).has_percentile]
    check_names(corpus, sources, None)
    if not ranked or not set(sources) <= set(ranked):
        raise UsageError(
            f"{corpus.config} ranks documents of these sources: {', '.join(ranked) or 'none'}. "
            "The others have no `rules.quality.min_percentile`."
        )
    prepare_home(corpus.store.root)
    from pipeline_defs.commands.build.dagster_commands import renew as renew_stage

    for name in dict.fromkeys(sources or ranked):
        if code := renew_stage(corpus.store.root, QUALITY_SCALE, RENEW, "--partition", name):
            return code
    say("`corpus build` filters these sources again.")
    return 0
