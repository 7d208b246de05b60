"""Fit the weights of a phase to the losses of proxy runs.

    loss of a metric = floor + exp(slopes . shares)
    weights          = argmin of the mean of all losses, each relative to its mean over the runs,
                       + penalty x divergence of the weights from the natural mixture,
                       within the limits

The law is of Ye et al. 2024 (arXiv 2403.16952), the weights are olmix's (Chen et al. 2026, arXiv
2602.12237).

Each metric has a law of its own, found with Huber's loss. Both problems are small: 64 runs of 16
domains and 20 metrics take seconds, most of them for the resamples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from assets.mixed.mixture_swarm import Domains, Floats, within

HUBER = 0.1  # of the range of a metric over the runs: larger residuals count linearly
RIDGE = 0.02  # pulls slopes together; on simulated truths 0.1 captured less, 0 no more
# Floors that are tried first, in ranges below the lowest loss; the last is nearly linear.
FLOORS = -np.geomspace(0.05, 10, 8)
STEEPEST = 20.0  # slope in ranges
MOST_STEPS, STEPS_FROM_NEAR = 50, 8
FOLDS = 10
LEAST_R2 = 0.2  # of runs whose losses are noise alone, one swarm in twenty has more
RESAMPLES = 100
INTERVAL = (0.05, 0.95)
ALMOST_NONE = 1e-12


@dataclass(frozen=True)
class MixtureFit:
    """A fit: shares of sources [D] with their interval, and what it predicts of metrics [M].

    natural, now, fitted  predicted losses of the mixtures [M]
    r2, error             of each metric, of runs that were left out: 1 - squared error / variance,
                          and root of the mean squared error
    mean_r2               of the mean of all metrics
    change                fall (below 0) of the mean loss, relative to the natural mixture, with
                          its interval; change_now: that of the weights that the phase has
    """

    shares: Floats
    low: Floats
    high: Floats
    natural: Floats
    now: Floats
    fitted: Floats
    r2: Floats
    error: Floats
    mean_r2: float
    change: tuple[float, float, float]
    change_now: float

    @property
    def is_better(self) -> bool:
        """Whether runs that are left out are predicted, and the losses surely fall."""
        return self.mean_r2 > LEAST_R2 and self.change[2] < 0


def predicted(laws: Floats, shares: Floats) -> Floats:
    """Return the losses [..., M] of varied shares [..., V] by laws [M, 1 + V]: floor, slopes."""
    losses: Floats = laws[:, 0] + np.exp(shares @ laws[:, 1:].T)
    return losses


def fit_laws(shares: Floats, losses: Floats, starts: Floats | None = None) -> Floats:
    """Return the laws [M, 1 + V] of losses [N, M] at varied shares [N, V]."""
    begin = [None] * losses.shape[1] if starts is None else starts
    return np.array([fit_law(shares, *each) for each in zip(losses.T, begin, strict=True)])


def fit_law(shares: Floats, losses: Floats, start: Floats | None) -> Floats:
    """Return the law [1 + V] of the losses [N] of one metric, above each other by a range."""
    from scipy.optimize import least_squares

    lowest, width = losses.min(), np.ptp(losses)
    scaled, num_shares = (losses - lowest) / width, shares.shape[1]
    centre = RIDGE * (np.eye(num_shares) - 1 / num_shares)

    def residuals(law: Floats) -> Floats:
        return np.append(law[0] + np.exp(shares @ law[1:]) - scaled, centre @ law[1:])

    def jacobian(law: Floats) -> Floats:
        slopes = np.exp(shares @ law[1:])[:, None] * shares
        rows = np.column_stack([np.ones(len(shares)), slopes])
        return np.vstack([rows, np.column_stack([np.zeros(num_shares), centre])])

    if start is None:
        tried = [linear_start(shares, scaled, floor) for floor in FLOORS]
        first = min(tried, key=lambda law: float(np.square(residuals(law)).sum()))
    else:
        first = np.append((start[0] - lowest) / width, start[1:] - np.log(width))
    low, high = np.full(num_shares + 1, -STEEPEST), np.full(num_shares + 1, STEEPEST)
    low[0], high[0] = FLOORS.min() * 1.01, 0
    inside = np.clip(first, low * 0.99, np.append(-ALMOST_NONE, high[1:] * 0.99))
    steps = MOST_STEPS if start is None else STEPS_FROM_NEAR
    found = least_squares(
        residuals,
        inside,
        jacobian,
        bounds=(low, high),
        loss="huber",
        f_scale=HUBER,
        ftol=1e-6,
        max_nfev=steps,
    ).x
    return np.append(lowest + width * found[0], found[1:] + np.log(width))  # the shares sum to 1


def linear_start(shares: Floats, scaled: Floats, floor: float) -> Floats:
    """Return the law with a floor that is nearest in the logarithm, weighted by its slope."""
    above = scaled - floor
    num_shares = shares.shape[1]
    rows = np.vstack([shares * above[:, None], RIDGE**2 * np.eye(num_shares)])
    targets = np.append(above * np.log(above), np.zeros(num_shares))
    return np.append(floor, np.linalg.lstsq(rows, targets)[0])


def best_shares(laws: Floats, scales: Floats, domains: Domains, penalty: float) -> Floats:
    """Return the varied shares [V] of the lowest mean loss and penalty: a convex problem."""
    from scipy.optimize import LinearConstraint, minimize

    prior, limits = domains.prior, domains.limits
    slopes = laws[:, 1:]

    def value(shares: Floats) -> tuple[float, Floats]:
        losses = np.exp(slopes @ shares) / scales / len(laws)
        ratios = np.log(np.maximum(shares, ALMOST_NONE) / prior)
        gradient = slopes.T @ losses + penalty * (ratios + 1)
        return float(losses.sum() + penalty * (shares @ ratios)), gradient

    found = minimize(
        value,
        prior,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, limit) for limit in limits.tolist()],
        constraints=LinearConstraint(np.ones(len(prior)), 1, 1),
        options={"ftol": 1e-12, "maxiter": 300},
    )
    return within(np.maximum(found.x, 0), limits)


def left_out_predictions(shares: Floats, losses: Floats) -> tuple[Floats, Floats]:
    """Return the losses [N, M] of each run by the laws of other runs, and their means there."""
    folds = np.arange(len(shares)) % FOLDS
    by_laws, by_means = np.empty_like(losses), np.empty_like(losses)
    for fold in np.unique(folds):
        of_fold = folds == fold
        by_laws[of_fold] = predicted(fit_laws(shares[~of_fold], losses[~of_fold]), shares[of_fold])
        by_means[of_fold] = losses[~of_fold].mean(axis=0)
    return by_laws, by_means


def fit_mixture(
    domains: Domains, runs: Floats, losses: Floats, now: Floats, penalty: float
) -> MixtureFit:
    """Fit the shares of a phase to runs [N, D] and their losses [N, M]; `now` [D]: its own shares.

    Losses are above 0 and vary; there are more runs than varied shares. Intervals are the 5 % and
    95 % quantiles of fits to resampled residuals, those of runs that were left out: all metrics of
    a run together.
    """
    shares, scales = domains.varied(runs), losses.mean(axis=0)
    laws = fit_laws(shares, losses)
    found = best_shares(laws, scales, domains, penalty)
    left_out, means = left_out_predictions(shares, losses)
    residuals = losses - left_out
    current = domains.varied(now)
    change = changes_by(domains.prior, scales)
    rng, at_runs = np.random.default_rng(0), predicted(laws, shares)
    others, changes = [], []
    for _ in range(RESAMPLES):
        drawn = residuals[rng.integers(len(runs), size=len(runs))]
        resampled = fit_laws(shares, at_runs + drawn, laws)
        others.append(domains.spread(best_shares(resampled, scales, domains, penalty)))
        changes.append(change(resampled, found))
    low, high = np.quantile(others, INTERVAL, axis=0)
    squares = np.square(residuals)
    return MixtureFit(
        shares=domains.spread(found),
        low=low,
        high=high,
        natural=predicted(laws, domains.prior),
        now=predicted(laws, current),
        fitted=predicted(laws, found),
        r2=1 - squares.sum(axis=0) / np.square(losses - means).sum(axis=0),
        error=np.sqrt(squares.mean(axis=0)),
        mean_r2=r2_of_means(residuals / scales, (losses - means) / scales),
        change=(change(laws, found), *np.quantile(changes, INTERVAL).tolist()),
        change_now=change(laws, current),
    )


def changes_by(prior: Floats, scales: Floats) -> Callable[[Floats, Floats], float]:
    """Return the function of the relative change of the mean loss by laws, from the prior."""

    def change(laws: Floats, shares: Floats) -> float:
        before, after = (predicted(laws, each) / scales for each in (prior, shares))
        return float(after.sum() / before.sum() - 1)

    return change


def r2_of_means(residuals: Floats, deviations: Floats) -> float:
    """Return the share of the variance of mean losses that is predicted, from parts [N, M]."""
    unexplained, total = (
        float(np.square(each.mean(axis=1)).sum()) for each in (residuals, deviations)
    )
    return 1 - unexplained / total
