"""A size of which nothing is doubted still has an interval."""

from __future__ import annotations

import numpy as np
import pytest

from assets.report.sample_intervals import Blocks, interval, totals_of


@pytest.mark.parametrize(("doubt", "width"), [(0.0, 0.03), (0.01, 0.03), (0.2, 0.2)])
def test_equal_blocks_have_the_doubt_of_their_size(doubt: float, width: float) -> None:
    blocks = Blocks(np.ones((100, 1)), 1000.0, np.ones((100, 1)), doubt)

    found = totals_of([blocks], np.random.default_rng(0))

    assert found.values.tolist() == [1000.0]
    assert np.log(found.draws[:, 0]).std() == pytest.approx(width, rel=0.2)
    limits = interval(1000.0, found.draws[:, 0])
    assert limits.low < 1000 * np.exp(-width) < 1000 * np.exp(width) < limits.high
