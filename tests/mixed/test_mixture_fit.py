"""The weights that are fitted to a truth that is known are nearly the best, within the limits."""

import numpy as np
from prelude import Any, pytest

from assets.mixed.mixture_fit import (
    best_shares,
    fit_law,
    fit_laws,
    fit_mixture,
    left_out_predictions,
    predicted,
)
from assets.mixed.mixture_swarm import Domains, Floats, domains_of, draw_mixtures

NOISE = 0.2  # of the deviation of a metric over the runs
SOURCES, METRICS, RUNS = 6, 3, 24


def truth_of(rng: np.random.Generator) -> Floats:
    """Laws of metrics: each falls most with a source of its own."""
    slopes = rng.normal(-1, 1, (METRICS, SOURCES)) - 1
    slopes[np.arange(METRICS), np.arange(METRICS)] -= 1.5
    return np.column_stack([rng.uniform(1.5, 3, METRICS), slopes])


def domains_like(rng: np.random.Generator, kept: int = 0) -> Domains:
    """Sources of any size, each at most four times its natural share."""
    natural = {f"s{i}": share for i, share in enumerate(rng.dirichlet(np.full(SOURCES, 2.0)))}
    most = {name: min(1.0, 4 * share) for name, share in natural.items()}
    return domains_of(natural, most, {name: natural[name] for name in [*natural][:kept]})


def measured(rng: np.random.Generator, truth: Floats, domains: Domains, noise: float) -> Any:
    """The runs [N, D] of a swarm, and their noisy losses [N, M]."""
    runs = np.array([[*each.values()] for each in draw_mixtures(domains, RUNS)])
    losses = predicted(truth, runs)
    return runs, losses + noise * losses.std(axis=0) * rng.normal(size=losses.shape)


def mean_loss(truth: Floats, shares: Floats, scales: Floats) -> float:
    """Mean relative loss of shares of sources."""
    return float((predicted(truth, shares) / scales).mean())


def best_of(truth: Floats, domains: Domains, scales: Floats) -> Floats:
    """The best shares of sources within the limits."""
    laws = np.column_stack([truth[:, 0], truth[:, 1:] @ domains.parts])  # of what is varied
    return domains.spread(best_shares(laws, scales, domains, 0))


@pytest.mark.parametrize("kept", [0, 4])
@pytest.mark.parametrize("seed", range(12))
def test_the_regret_on_a_known_truth_is_at_most_two_per_cent(seed: int, kept: int) -> None:
    rng = np.random.default_rng(seed)
    domains, truth = domains_like(rng, kept=kept), truth_of(rng)
    runs, losses = measured(rng, truth, domains, NOISE)
    scales = losses.mean(axis=0)

    laws = fit_laws(domains.varied(runs), losses)
    found = domains.spread(best_shares(laws, scales, domains, 0.005))

    best, natural = best_of(truth, domains, scales), domains.spread(domains.prior)
    lowest, before = (mean_loss(truth, shares, scales) for shares in (best, natural))
    assert lowest <= mean_loss(truth, found, scales) <= 1.02 * lowest
    assert mean_loss(truth, found, scales) < before
    assert found.sum() == pytest.approx(1)
    assert (found <= domains.most + 1e-9).all() and (found >= 0).all()
    of_group, together = found[:kept], domains.natural[:kept]
    assert of_group * together.sum() == pytest.approx(together * of_group.sum())


def test_a_fit_has_intervals_within_the_limits_and_predicts_runs_that_were_left_out() -> None:
    rng = np.random.default_rng(0)
    domains, truth = domains_like(rng), truth_of(rng)
    runs, losses = measured(rng, truth, domains, NOISE)

    found = fit_mixture(domains, runs, losses, domains.natural, 0.005)

    scales = losses.mean(axis=0)
    best = best_of(truth, domains, scales)
    assert found.is_better and found.mean_r2 > 0.5 and (found.r2 > 0.5).all()
    assert (found.low <= found.high).all() and (found.high <= domains.most + 1e-9).all()
    assert (found.low - 0.05 <= best).all() and (best <= found.high + 0.05).all()
    assert found.change[1] < found.change[0] < found.change[2] < 0 == round(found.change_now, 9)
    for shares, losses_there in ((found.shares, found.fitted), (domains.natural, found.natural)):
        assert losses_there == pytest.approx(predicted(truth, shares), rel=0.02)


def test_losses_that_do_not_depend_on_the_mixture_are_no_signal() -> None:
    better = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        domains = domains_like(rng)
        runs, _ = measured(rng, truth_of(rng), domains, 0)
        losses = rng.normal(3, 0.01, (RUNS, 1))
        better += fit_mixture(domains, runs, losses, domains.natural, 0.005).is_better
    assert better == 0


def test_a_law_is_found_again_without_noise() -> None:
    rng = np.random.default_rng(0)
    domains, truth = domains_like(rng), truth_of(rng)
    runs, losses = measured(rng, truth, domains, 0)

    for metric in range(METRICS):
        law = fit_law(runs, losses[:, metric], None)
        assert predicted(law[None], runs)[:, 0] == pytest.approx(losses[:, metric], rel=2e-3)


def test_one_run_that_went_wrong_changes_little() -> None:
    rng = np.random.default_rng(1)
    domains, truth = domains_like(rng), truth_of(rng)
    runs, losses = measured(rng, truth, domains, 0)
    wrong = losses.copy()
    wrong[5] *= 1.5

    laws = [np.array([fit_law(runs, column, None) for column in of.T]) for of in (losses, wrong)]
    best = [best_shares(law, losses.mean(axis=0), domains, 0.005) for law in laws]

    assert np.abs(best[0] - best[1]).sum() < 0.1


def test_a_run_is_predicted_from_the_others_alone() -> None:
    rng = np.random.default_rng(2)
    domains, truth = domains_like(rng), truth_of(rng)
    runs, losses = measured(rng, truth, domains, NOISE)
    changed = losses.copy()
    changed[4] += 1

    before, after = (left_out_predictions(runs, each)[0][4] for each in (losses, changed))

    assert before.tolist() == after.tolist()


def test_the_penalty_keeps_weights_near_the_natural_ones() -> None:
    rng = np.random.default_rng(3)
    domains, truth = domains_like(rng), truth_of(rng)
    away = [
        np.abs(best_shares(truth, np.ones(METRICS), domains, penalty) - domains.prior).sum()
        for penalty in (0.0, 0.01, 0.1, 100.0)
    ]

    assert away == sorted(away, reverse=True) and away[0] > 0.2 and away[-1] < 0.01
