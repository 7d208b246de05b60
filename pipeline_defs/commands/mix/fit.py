"""`corpus mix fit`: the weights of a phase from the ratios and metrics of proxy runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import yaml
from cyclopts import Parameter

from assets.mixed.mixture_fit import MixtureFit, fit_mixture
from assets.mixed.mixture_swarm import as_weights
from pipeline_defs.commands.answers import nested, print_frame
from pipeline_defs.commands.mix.phase_domains import (
    Phase,
    PhaseDomains,
    Refit,
    phase_domains,
    with_shares,
)
from pipeline_defs.commands.mix.run_tables import metrics_of, ratios_of, read_table
from pipeline_defs.commands.terminal import Json, print_json, say
from pipeline_defs.load_corpus import load_corpus
from resources.errors import UsageError

PENALTY = 0.005  # on simulated truths 0.01 captures less where there is little noise


def fit(
    ratios: Annotated[Path, Parameter(help="Mixtures of the runs, as `mix swarm` writes them.")],
    metrics: Annotated[Path, Parameter(help="What was measured of each: the lower the better.")],
    /,
    *,
    phase: Phase = None,
    refit: Refit = (),
    penalty: Annotated[
        float, Parameter(help="What a divergence of 1 nat from natural costs, in mean losses.")
    ] = PENALTY,
    json: Json = False,
) -> int:
    """Print the weights; return 1 if they are not better than the natural ones."""
    if not 0 <= penalty < math.inf:
        raise UsageError(f"--penalty is {penalty}; it must be a number from 0 on")
    of_phase = phase_domains(load_corpus(), phase, refit)
    domains, mixed, measured = of_phase.domains, read_table(ratios), read_table(metrics)
    shares, losses = ratios_of(mixed, domains), metrics_of(measured, mixed)
    now = np.array([of_phase.now[name] for name in domains.names])
    found = fit_mixture(domains, shares, losses, now, penalty)
    weights = as_weights(domains.names, found.shares, domains.most)
    digests = {"ratios": mixed.sha256, "metrics": measured.sha256}
    fitted = fitted_phase(of_phase, weights, digests) if found.is_better else None
    tables = {
        "weights": weights_table(of_phase, found, weights),
        "metrics": metrics_table(measured.columns, found),
    }
    if json:
        print_json(
            {name: nested(table) for name, table in tables.items()}
            | {"change": found.change, "change_now": found.change_now, "r2": found.mean_r2}
            | {"is_better": found.is_better, "phase": fitted}
        )
        return int(not found.is_better)
    for name, table in tables.items():
        print_frame(name, table)
    say(*verdict(found))
    if fitted:
        say("Write into pipeline.yaml:", *yaml.safe_dump([fitted], sort_keys=False).splitlines())
    return int(not found.is_better)


def fitted_phase(
    phase: PhaseDomains, weights: Mapping[str, float], digests: Mapping[str, str]
) -> dict[str, Any]:
    """Return the phase with fitted weights; sources that have none keep theirs, of 0."""
    left_out = dict.fromkeys(phase.config.given_shares() or (), 0.0)
    return with_shares(phase.config, phase.tokens, weights={**left_out, **weights}, fitted=digests)


def weights_table(
    phase: PhaseDomains, found: MixtureFit, weights: Mapping[str, float]
) -> pl.DataFrame:
    """Return the weight of each source: natural, now and fitted, its interval, and its epochs."""
    domains = phase.domains
    columns = {
        "source": domains.names,
        "natural_weight": domains.spread(domains.prior),
        "now_weight": [phase.now[name] for name in domains.names],
        "fitted_weight": [weights[name] for name in domains.names],
        "low_weight": found.low,
        "high_weight": found.high,
        "most_weight": domains.most,
        "epochs": [weights[n] * phase.tokens / phase.available[n] for n in domains.names],
    }
    return pl.DataFrame(columns)


def metrics_table(names: list[str], found: MixtureFit) -> pl.DataFrame:
    """Return the losses that are predicted, and how well runs are that were left out."""
    told = ("natural", "now", "fitted", "error", "r2")
    return pl.DataFrame({"metric": names} | {name: getattr(found, name) for name in told})


def verdict(found: MixtureFit) -> list[str]:
    """Say whether the weights are better than the natural ones."""
    change, low, high = found.change
    lines = [
        f"Mean loss to that of the natural mixture: {change:+.2%} ({low:+.2%} to {high:+.2%}); as "
        f"the phase is now: {found.change_now:+.2%}. Of mean losses of runs that were left out "
        f"{found.mean_r2:.0%} of the variance is predicted."
    ]
    if not found.is_better:
        lines.append(
            "No signal: the runs do not show that any weights are better than the natural ones. "
            "Make more runs, or longer ones, or measure what the sources make differ."
        )
    return lines
