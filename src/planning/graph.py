"""A graph of steps that wait for others: their order and levels, the first cycle, and which are ready."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Final, Generic, TypeVar

T = TypeVar("T", bound=Hashable)

_LONGEST: Final = 8
_HEAD: Final = 3  # of a longer cycle, and
_TAIL: Final = 2
_BLOCK: Final = 2_048


class Graph(Generic[T]):
    """Steps in the order of their document, and what each waits for.

    Attributes:
        needs: By step, what it waits for, each once.
    """

    def __init__(self, needs: Mapping[T, Iterable[T]]) -> None:
        """Take the steps, and omit what they wait for and is not a step."""
        self.needs = {
            step: tuple(dict.fromkeys(other for other in others if other in needs))
            for step, others in needs.items()
        }

    @cached_property
    def _waiting(self) -> TopologicalSorter[T]:
        return _sorter(self.needs)

    def ready(self) -> tuple[T, ...]:
        """The steps that have become ready since the last time."""
        return self._waiting.get_ready()

    def done(self, step: T) -> None:
        """Count a step as done.

        Raises:
            ValueError: It was not ready yet, or is done.
        """
        self._waiting.done(step)

    @cached_property
    def _batches(self) -> list[tuple[T, ...]]:
        """The steps that are neither in a cycle nor behind one: those that are ready at once, together."""
        sorter, batches = _sorter(self.needs), list[tuple[T, ...]]()
        while batch := sorter.get_ready():
            sorter.done(*batch)
            batches.append(batch)
        return batches

    @cached_property
    def levels(self) -> dict[T, int]:
        """The number of steps that must run one after the other before each step, in an order for running.

        The steps of a cycle, and those behind one, come last, each on its own level.
        """
        levels = {step: level for level, batch in enumerate(self._batches) for step in batch}
        rest = [step for step in self.needs if step not in levels]
        return levels | {step: level for level, step in enumerate(rest, len(self._batches))}

    @cached_property
    def cycle(self) -> list[T]:
        """The first cycle, from its earliest step back to that: each waits for the next. Empty if none."""
        rest = list(self.levels)[sum(map(len, self._batches)) :]
        try:
            # Without the steps before it: from those the search could first come to a later cycle.
            _sorter(Graph({step: self.needs[step] for step in rest}).needs, strict=True)
        except CycleError as error:
            cycle: list[T] = error.args[1][:0:-1]
            first = min(range(len(cycle)), key=lambda at: self.levels[cycle[at]])  # in the document's order
            return [*cycle[first:], *cycle[: first + 1]]
        return []

    @cached_property
    def _followers(self) -> dict[T, list[T]]:
        followers: dict[T, list[T]] = {}
        for step, others in self.needs.items():
            for other in others:
                followers.setdefault(other, []).append(step)
        return followers

    def behind(self, step: T) -> list[T]:
        """All steps that wait for one, also through others, each once and nearest first."""
        found = dict.fromkeys(self._followers.get(step, ()))
        todo = list(found)
        for each in todo:  # it grows meanwhile
            new = [other for other in self._followers.get(each, ()) if other not in found]
            found |= dict.fromkeys(new)
            todo += new
        return todo

    def waits(self, pairs: Sequence[tuple[T, T]]) -> dict[tuple[T, T], bool]:
        """For each pair of two different steps: whether the first waits for the second, also through others.

        Sets are kept as the bits of integers, for some thousands of different second steps at a time: near to
        linear, and without memory for each pair of steps. In a cycle, what closes it is not followed.
        """
        answers: dict[tuple[T, T], bool] = {}
        order = self._depth_first()
        targets = list(dict.fromkeys(target for _, target in pairs))
        for start in range(0, len(targets), _BLOCK):
            bits = {target: 1 << at for at, target in enumerate(targets[start : start + _BLOCK])}
            reached = dict.fromkeys(order, 0)
            for step in order:
                reached[step] = bits.get(step, 0)
                for other in self.needs[step]:
                    reached[step] |= reached[other]
            answers |= {pair: bool(reached[pair[0]] & bits[pair[1]]) for pair in pairs if pair[1] in bits}
        return answers

    def _depth_first(self) -> list[T]:
        """The steps, each behind those that it waits for, as far as there are no cycles."""
        order, begun = dict[T, None](), set[T]()
        path = list(reversed(self.needs))
        while path:
            begun.add(step := path[-1])
            new = [other for other in self.needs[step] if other not in begun]
            path += reversed(new)
            if not new:
                order[path.pop()] = None
        return list(order)


def _sorter(needs: Mapping[T, Iterable[T]], *, strict: bool = False) -> TopologicalSorter[T]:
    """Hands out steps in the order of the document, as far as there is no cycle.

    Raises:
        CycleError: There is a cycle, and it is to be strict.
    """
    sorter = TopologicalSorter[T](dict.fromkeys(needs, ()))
    for step, others in needs.items():
        sorter.add(step, *others)
    try:
        sorter.prepare()
    except CycleError:
        if strict:
            raise
    return sorter


def written(cycle: Sequence[str]) -> str:
    """A cycle as text, ``a -> b -> a``; a long one without its middle."""
    more = len(cycle) - 1 - _HEAD - _TAIL
    if len(cycle) - 1 > _LONGEST:
        cycle = [*cycle[:_HEAD], f"... {more:,} more ...", *cycle[-_TAIL - 1 :]]
    return " -> ".join(cycle)
