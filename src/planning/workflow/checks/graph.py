"""Steps and what they depend on, as numbers: which nodes form a cycle, and which depend on which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Graph"]

_BLOCK = 2_048


class Graph:
    """Nodes from 0, each with the nodes that it depends on; none depends on itself.

    ``graphlib`` stops at the first cycle. A report names all cycles, and the checks ask what depends on what
    across them; so this is Tarjan's walk, with an explicit stack and in linear time.

    Attributes:
        edges: By node, what it depends on.
        cycles: Nodes that depend on each other in a cycle, each on the next, and the last on the
            first. No node is in two of them, and of nodes that all depend on each other at least some
            are in one.
    """

    def __init__(self, edges: Sequence[Sequence[int]]) -> None:
        """Walk the graph."""
        self.edges = edges
        self.cycles: list[list[int]] = []
        self._component = [-1] * len(edges)
        self._members: list[list[int]] = []
        self._walk()

    def _walk(self) -> None:
        """Find the cycles, and the components: sets of nodes that all depend on each other.

        The components are numbered so that each depends on lower ones alone.
        """
        edges, component = self.edges, self._component
        seen = [0] * len(edges)  # the order in which they were reached, from 1
        lowest = [0] * len(edges)
        depth = [-1] * len(edges)  # where on the path they are
        path, ahead, open_nodes = list[int](), list[Iterator[int]](), list[int]()
        reported = [
            -1
        ]  # for each length of the path: how deep the deepest node is that is in a cycle already
        count = 0
        for root in range(len(edges)):
            target = -1 if seen[root] else root
            while target >= 0 or path:
                if target >= 0:
                    count += 1
                    seen[target] = lowest[target] = count
                    depth[target] = len(path)
                    path.append(target)
                    open_nodes.append(target)
                    ahead.append(iter(edges[target]))
                    reported.append(reported[-1])
                node, target = path[-1], -1
                for other in ahead[-1]:
                    if not seen[other]:
                        target = other
                        break
                    if component[other] < 0:
                        lowest[node] = min(lowest[node], seen[other])
                        # A cycle with a node of another is in the same component, which has one already.
                        if depth[other] > reported[-1]:
                            self.cycles.append(path[depth[other] :])
                            reported[depth[other] + 1 :] = range(depth[other], len(path))
                if target < 0:
                    self._leave(path, ahead, reported, lowest, depth)
                    if lowest[node] == seen[node]:
                        self._close(node, open_nodes)

    @staticmethod
    def _leave(
        path: list[int], ahead: list[Iterator[int]], reported: list[int], lowest: list[int], depth: list[int]
    ) -> None:
        """Go one step back on the path."""
        node = path.pop()
        ahead.pop()
        reported.pop()
        depth[node] = -1
        if path:
            lowest[path[-1]] = min(lowest[path[-1]], lowest[node])

    def _close(self, node: int, open_nodes: list[int]) -> None:
        """Take the component that a node is the first of."""
        members = list[int]()
        while not members or members[-1] != node:
            members.append(open_nodes.pop())
            self._component[members[-1]] = len(self._members)
        self._members.append(members)

    @property
    def order(self) -> Sequence[int]:
        """By node, a number that is not below that of any node that it depends on."""
        return self._component

    def reaches(self, pairs: Sequence[tuple[int, int]]) -> list[bool]:
        """For each pair of two nodes: whether the first depends on the second, also through others.

        Sets are kept as the bits of integers, for some thousands of different second nodes at a time:
        near to linear, and without memory for each pair of nodes.
        """
        component = self._component
        wanted = sorted({component[target] for _, target in pairs})
        answers = [False] * len(pairs)
        number = {each: place for place, each in enumerate(wanted)}
        asked: list[list[int]] = [[] for _ in range(0, len(wanted), _BLOCK)]
        for place, (_, target) in enumerate(pairs):
            asked[number[component[target]] // _BLOCK].append(place)
        below = self._below() if pairs else []
        for block, places in enumerate(asked):
            targets = wanted[block * _BLOCK : (block + 1) * _BLOCK]
            last = max(component[pairs[place][0]] for place in places)
            reached = _reached(below, targets, last)
            for place in places:
                node, target = pairs[place]
                bits = reached[component[node] - targets[0]] if component[node] >= targets[0] else 0
                answers[place] = bool(bits >> number[component[target]] - block * _BLOCK & 1)
        return answers

    def _below(self) -> list[set[int]]:
        """By component, those that it depends on itself."""
        component = self._component
        return [
            {component[other] for node in members for other in self.edges[node]} - {number}
            for number, members in enumerate(self._members)
        ]


def _reached(below: Sequence[Iterable[int]], targets: Sequence[int], last: int) -> list[int]:
    """By component, from the first target to the last one asked for: which targets it is or depends on."""
    first = targets[0]
    reached = [0] * max(last - first + 1, targets[-1] - first + 1)
    for place, target in enumerate(targets):
        reached[target - first] = 1 << place
    for number in range(first, last + 1):
        bits = reached[number - first]
        for other in below[number]:
            if other >= first:
                bits |= reached[other - first]
        reached[number - first] = bits
    return reached
