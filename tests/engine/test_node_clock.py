"""An error on a node whose clock is wrong is the node's: servers refuse its requests."""

import pytest

from resources.engine.cost import NO_COST
from resources.engine.ray_driver import with_clock
from resources.engine.run_task import Ended, NodeFault, PartError

REFUSED = PartError("part-1: PermissionError: RequestTimeTooSkewed")


@pytest.mark.parametrize(
    ("ahead", "told"), [(7_200.4, "7,200 s ahead of"), (-301.0, "301 s behind")]
)
def test_an_error_under_a_wrong_clock_is_the_nodes(ahead: float, told: str) -> None:
    error = with_clock(Ended(1, None, REFUSED, NO_COST), ahead, " on b (10.0.0.2)").error
    assert isinstance(error, NodeFault)
    assert str(error).startswith(
        f"{REFUSED}. The clock on b (10.0.0.2) is {told} that of the build's machine: set it (NTP)"
    )


def test_any_other_end_stays_as_it_is() -> None:
    for error, ahead in ((REFUSED, 299.0), (REFUSED, -299.0), (None, 7_200.0)):
        ended = Ended(1, None, error, NO_COST)
        assert with_clock(ended, ahead, "") is ended
