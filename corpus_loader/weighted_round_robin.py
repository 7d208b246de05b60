"""Weighted round robin: the member of any turn is computed from the weights, never stored.

A Huffman tree over the counts halves the turns: of the first x turns of a node, its left child has
x times its share, rounded to the nearest. That is off by at most a half at each node, and what it
inherits from above shrinks with its share of the node: together, every prefix is within
`LARGEST_ERROR` turns of each member's share, whatever the counts. (Half of the sum of the
reciprocal Fibonacci numbers, by which the nodes above a leaf of a Huffman tree grow at least.)
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from corpus_loader.interleave import Int64s, exact

LARGEST_ERROR = 1.68

Node = int | tuple["Node", int, "Node", int]  # a member, or (left, its turns, right, its turns)


class Turns:
    """The turns of members, as many as their counts say; members of 0 have none."""

    def __init__(self, counts: Sequence[int]) -> None:
        self.total = sum(counts)
        self.members = len(counts)
        # Ties by the age of a node, so that the tree follows from the counts alone.
        nodes: list[tuple[int, int, Node]] = [(n, i, i) for i, n in enumerate(counts) if n]
        heapq.heapify(nodes)
        for age in range(self.members, self.members + len(nodes) - 1):
            less, _, left = heapq.heappop(nodes)
            more, _, right = heapq.heappop(nodes)
            heapq.heappush(nodes, (less + more, age, (left, less, right, more)))
        self.root = nodes[0][2] if nodes else 0

    def lookup(self, turn: Int64s) -> tuple[npt.NDArray[np.intp], Int64s]:
        """Return (member, number of its turn) for turns from 0 to total - 1."""
        member, number = np.empty(turn.size, np.intp), np.empty(turn.size, np.int64)
        waiting: list[tuple[Node, npt.NDArray[np.intp], Int64s]] = [
            (self.root, np.arange(turn.size), turn)
        ]
        while waiting:
            node, place, turn = waiting.pop()
            if isinstance(node, int):
                member[place], number[place] = node, turn
            elif place.size:
                left, less, right, more = node
                before = of_left(turn, less, less + more)
                is_left = of_left(turn + 1, less, less + more) > before
                waiting.append((left, place[is_left], before[is_left]))
                waiting.append((right, place[~is_left], (turn - before)[~is_left]))
        return member, number

    def before(self, turn: int) -> list[int]:
        """Return how many of the first turns each member has."""
        counts = [0] * self.members
        waiting = [(self.root, turn)]
        while waiting:
            node, turn = waiting.pop()
            if isinstance(node, int):
                counts[node] = turn
            else:
                left, less, right, more = node
                of_less = int(of_left(np.array([turn]), less, less + more)[0])
                waiting += [(left, of_less), (right, turn - of_less)]
        return counts


def of_left(turns: Int64s, less: int, both: int) -> Int64s:
    """Return how many of the first turns of a node its left child has."""
    products = exact(turns, 2 * both * less + both) * (2 * less) + both
    shared: Int64s = (products // (2 * both)).astype(np.int64)
    return shared
