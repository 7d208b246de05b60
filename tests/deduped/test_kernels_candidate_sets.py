"""Sets of candidates against Python sets, whatever the order of joins."""

from prelude import example, given, np, st

from assets.deduped.kernels.candidate_sets import (
    END,
    LIMIT,
    CandidateSets,
    add_leader,
    join_sets,
    new_sets,
    root,
)

SIZE = 200
rows = st.integers(0, SIZE - 1)
near_rows = st.builds(lambda row: (row, row + 1), st.integers(0, SIZE - 2))
steps = st.lists(st.tuples(rows, rows) | near_rows | rows, max_size=150)


def chain(sets: CandidateSets, row: int, field: str) -> list[int]:
    found = []
    while row != END:
        found.append(int(row))
        row = sets[row][field]
    return found


@given(steps)
@example([*range(LIMIT), *((row, row + 1) for row in range(LIMIT)), LIMIT + 1])
@example([*range(SIZE), *((row, SIZE - 1 - row) for row in range(SIZE)), (0, 1), (2, 3)])
@example([*range(160), *((row % 2, row) for row in range(2, 160)), (0, 1)])
@example([*range(100), *((0, row) for row in range(1, 100))])
@example([*range(99, -1, -1), *((99, row) for row in range(100))])
def test_members_and_leaders_are_those_of_plain_sets(actions: list[tuple[int, int] | int]) -> None:
    sets = new_sets(SIZE)
    members, leaders = [{row} for row in range(SIZE)], [set[int]() for _ in range(SIZE)]
    for action in actions:
        if isinstance(action, int):
            if action not in leaders[action]:
                add_leader(sets, root(sets, action), action)
                leaders[action].add(action)
        elif members[action[0]] is not members[action[1]]:
            join_sets(sets, *action)
            joined = members[action[0]] | members[action[1]]
            of_joined = leaders[action[0]] | leaders[action[1]]
            for row in joined:
                members[row], leaders[row] = joined, of_joined
        else:
            join_sets(sets, *action)

    for row in range(SIZE):
        home = root(sets, row)
        assert home == min(members[row])
        assert sets[home]["size"] == len(members[row])
        assert sorted(chain(sets, home, "next_member")) == sorted(members[row])
        expected = sorted(leaders[row])[:LIMIT]
        assert chain(sets, sets[home]["first_leader"], "next_leader") == expected


def test_a_root_is_found_in_any_forest_and_its_paths_are_halved() -> None:
    forest = np.zeros(6, [("parent", np.int32), ("other", np.int8)])
    forest["parent"] = [0, 0, 1, 2, 3, 5]

    assert [root(forest, row) for row in (4, 5, 2)] == [0, 5, 0]
    assert forest["parent"].tolist() == [0, 0, 0, 2, 2, 5]
