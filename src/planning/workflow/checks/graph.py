"""Steps and their dependencies, as numbers: cycles, and which steps depend on which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_BLOCK = 2_048
_NEW, _DONE = -1, -2


class Graph:
    """Nodes from 0, each with the nodes that it depends on; none depends on itself.

    ``graphlib`` stops at the first cycle. A report names all cycles, and the checks ask what depends on what
    beside them; so this is a walk in depth, with an explicit stack and in linear time.

    Attributes:
        edges: By node, what it depends on.
        cycles: Nodes that depend on each other in a cycle, each on the next, and the last on the
            first. No node is in two of them, and of nodes that all depend on each other at least some
            are in one.
        order: The nodes, each behind those that it depends on, as far as there are no cycles.
    """

    def __init__(self, edges: Sequence[Sequence[int]]) -> None:
        self.edges = edges
        self.cycles: list[list[int]] = []
        self.order: list[int] = []
        place = [_NEW] * len(edges)  # where on the path they are
        path, ahead = list[int](), list[Iterator[int]]()
        reported = [-1]  # for each length of the path: the place of the last node that is in a cycle already
        for root in range(len(edges)):
            target = root if place[root] == _NEW else _DONE
            while target >= 0 or path:
                if target >= 0:
                    place[target] = len(path)
                    path.append(target)
                    ahead.append(iter(edges[target]))
                    reported.append(reported[-1])
                target = _DONE
                for other in ahead[-1]:
                    if place[other] == _NEW:
                        target = other
                        break
                    if place[other] > reported[-1]:
                        self.cycles.append(path[place[other] :])
                        reported[place[other] + 1 :] = range(place[other], len(path))
                if target < 0:
                    ahead.pop()
                    reported.pop()
                    self.order.append(path.pop())
                    place[self.order[-1]] = _DONE

    def reaches(self, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], bool]:
        """For each pair of two nodes: whether the first depends on the second, also through others.

        Sets are kept as the bits of integers, for some thousands of different second nodes at a time: near to
        linear, and without memory for each pair of nodes. In a cycle, the dependency that closes it is not
        followed.
        """
        answers: dict[tuple[int, int], bool] = {}
        wanted = {target for _, target in pairs}
        targets = [node for node in self.order if node in wanted]
        for start in range(0, len(targets), _BLOCK):
            bits = {target: 1 << at for at, target in enumerate(targets[start : start + _BLOCK])}
            reached = [0] * len(self.edges)
            for node in self.order:
                found = bits.get(node, 0)
                for other in self.edges[node]:
                    found |= reached[other]
                reached[node] = found
            answers |= {pair: bool(reached[pair[0]] & bits[pair[1]]) for pair in pairs if pair[1] in bits}
        return answers
