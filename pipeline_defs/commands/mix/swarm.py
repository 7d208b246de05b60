"""`corpus mix swarm`: mixtures around the natural one, as phases of few tokens for proxy runs.

Two files are written: a config beside pipeline.yaml with these phases instead of the others, whose
build mixes them over the same store and computes nothing before; and the weights of each run, a row
each, in the form that olmix reads (arXiv 2602.12237).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import yaml
from cyclopts import Parameter

from assets.mixed.mixture_swarm import draw_mixtures
from pipeline_defs.commands.answers import nested, print_frame
from pipeline_defs.commands.mix.phase_domains import (
    Phase,
    PhaseDomains,
    Refit,
    phase_domains,
    with_shares,
)
from pipeline_defs.commands.terminal import (
    Json,
    Positive,
    as_typed,
    print_json,
    say,
    write_text,
)
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.settings.key_types import NAME
from resources.settings.named_files import read_yaml
from resources.settings.pipeline import Settings

# The last would be refused for a source that a mixture leaves out.
NOT_OF_PROXIES = ("continues", "formats", "target_bytes", "loss_weights")
RUNS_PER_DOMAIN = 4  # runs are linear in the domains (olmix, section 4)
FEWEST_RUNS = 16


def swarm(
    *,
    tokens: Annotated[Positive, Parameter(help="Tokens of each run.")],
    phase: Phase = None,
    runs: Annotated[
        Positive | None, Parameter(help="Mixtures (default: 4 a domain, and at least 16).")
    ] = None,
    refit: Refit = (),
    out: Annotated[
        str, Parameter(help="Writes OUT.yaml and OUT-ratios.csv beside pipeline.yaml.")
    ] = "swarm",
    json: Json = False,
) -> int:
    """Write the phases and the ratios."""
    corpus = load_corpus()
    of_phase = phase_domains(corpus, phase, refit)
    count = runs or max(FEWEST_RUNS, RUNS_PER_DOMAIN * len(of_phase.domains.prior))
    mixtures = draw_mixtures(of_phase.domains, count)
    names = [f"{of_phase.config.name}-{out}-{n:0{len(str(count - 1))}}" for n in range(count)]
    phases = proxies(of_phase, tokens, dict(zip(names, mixtures, strict=True)))
    config, ratios = written_files(corpus, out)
    content, _ = read_yaml(corpus.config)
    assert isinstance(content, dict), "it was loaded before"
    changed = content | {"phases": phases}
    Settings.model_validate(changed)
    table = pl.DataFrame([{"run": n} | w for n, w in zip(names, mixtures, strict=True)])
    write_text(config, yaml.safe_dump(changed, sort_keys=False, allow_unicode=True))
    write_text(ratios, table.write_csv())
    if json:
        print_json({"config": str(config), "ratios": str(ratios), "mixtures": nested(table)})
        return 0
    print_frame("mixtures, of which the first is the natural one", table)
    say(f"Wrote {config} and {ratios}. Mix them: {as_typed('build', '--config', str(config))}")
    return 0


def proxies(
    of_phase: PhaseDomains, tokens: int, mixtures: Mapping[str, Mapping[str, float]]
) -> list[dict[str, Any]]:
    """Return the phases of runs, by name: the phase itself, with other weights and few tokens."""
    if tokens > of_phase.tokens:
        raise UsageError(
            f"runs of {tokens:,} tokens are longer than phase {of_phase.config.name!r}, which has "
            f"{of_phase.tokens:,}: give fewer"
        )
    phases = (
        with_shares(of_phase.config, tokens, name=name, weights=weights)
        for name, weights in mixtures.items()
    )
    return [{k: v for k, v in phase.items() if k not in NOT_OF_PROXIES} for phase in phases]


def written_files(corpus: Corpus, out: str) -> tuple[Path, Path]:
    """Return the config and the table to write; UsageError if one is there, or of no plain name.

    Paths in the config are as in pipeline.yaml: relative to its folder.
    """
    if not re.fullmatch(NAME, out):
        raise UsageError(f"--out is {out!r}: give a name, without a folder or an ending")
    folder = corpus.config.parent
    files = folder / f"{out}.yaml", folder / f"{out}-ratios.csv"
    for path in files:
        if path.exists():
            raise UsageError(f"{path} exists: remove it, or give another --out")
    return files
