"""The order of a phase with `upsample`, from its plan: it must never change by accident.

If this fails, a run that resumes from a saved state repeats some samples and skips others. Change a
value only on purpose, and with the version of the mixture file.
"""

from fractions import Fraction

import numpy as np

from assets.mixed.budgets import ClassTokens
from assets.mixed.plan import plan_phase
from corpus_loader.order import PhaseOrder, SourceShape
from resources.settings.phases import PhaseConfig

ROWS = {"web/class-0": (5, 4), "web/class-1": (4, 2), "web/class-2": (2, 1), "books": (5,)}
TIMES = {"web/class-0": 0, "web/class-1": 1, "web/class-2": 3}
ROW_TOKENS = 8


def test_order() -> None:
    classes = {
        name: ClassTokens(ROW_TOKENS * sum(ROWS[name]), Fraction(times))
        for name, times in TIMES.items()
    }
    phase = PhaseConfig.model_validate(
        {
            "name": "p",
            "upsample": [[0.4, 0], [0.9, 1], [1, 3]],
            "budgets": {"web": 120, "books": 32},
        }
    )
    available = {"web": sum(unit.available for unit in classes.values()), "books": 40}
    plan = plan_phase(phase, available, classes={"web": classes})
    sources = tuple(
        SourceShape(unit.source, unit.planned // ROW_TOKENS, ROWS[unit.source])
        for unit in plan.units
    )
    found = PhaseOrder(7, 4, None, sources).samples(np.arange(19))

    assert [unit.source for unit in plan.units] == [*ROWS]
    rows = zip(found.source.tolist(), found.row.tolist(), found.epoch.tolist(), strict=True)
    assert [*rows] == ORDER


ORDER = [
    (3, 0, 0),
    (2, 1, 0),
    (2, 2, 0),
    (1, 3, 0),
    (3, 1, 0),
    (1, 0, 0),
    (1, 5, 0),
    (2, 0, 0),
    (1, 4, 0),
    (3, 2, 0),
    (2, 1, 1),
    (2, 0, 1),
    (2, 1, 2),
    (1, 1, 0),
    (2, 2, 1),
    (2, 2, 2),
    (2, 0, 2),
    (3, 3, 0),
    (1, 2, 0),
]
