"""Read-only views of what is in the memory, as JSON has it: nothing is changed or called to be handed out.

So a condition means the same on a value that a step returned and on that value read from a snapshot.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from math import isfinite
from types import MappingProxyType, MemberDescriptorType
from typing import Any, Final

import attrs

from planning.tools.result import plain
from planning.workflow.conditions.grammar import LARGEST
from planning.workflow.values import TEXTS, is_written, json_keys

__all__ = ["SEEN", "Budget", "Items", "Keys", "Opaque", "OverBudget", "wrap"]

_ITEM: Final = 10
"""What looking at an item costs, in characters looked at."""
_LOOK: Final = 20
"""What looking for a key costs, beside the length of the key."""
_STRANGER: Final = 200
"""What finding out about a value of an unknown class costs."""
_OPERATION: Final = 100_000
_EVALUATION: Final = 300_000
_DEPTH: Final = 50
_ABSENT: Final = object()
_KEYS: Final = (str, int, float, Enum, type(None), *TEXTS)
# What a class is made of, whatever its metaclass says.
_BASES: Final = type.__dict__["__mro__"].__get__
_NAMESPACE: Final = type.__dict__["__dict__"].__get__


class OverBudget(Exception):
    """A condition that would have to look at more than it may."""


class Budget:
    """How much one evaluation may still look at, in characters; an item is worth ten of them."""

    __slots__ = ("_depth", "_forms", "_left")

    def __init__(self) -> None:
        self._left = _EVALUATION
        self._depth = 0
        self._forms: dict[int, tuple[Any, Any]] = {}

    def form(self, value: Any, convert: Callable[[Any], Any]) -> Any:
        """What a value is in JSON, worked out once: a snapshot has it at no cost."""
        if id(value) not in self._forms:
            self._forms[id(value)] = value, convert(value)
        return self._forms[id(value)][1]

    def forget(self) -> None:
        """Let go of the values: the evaluation is over."""
        self._forms.clear()

    def spend(self, cost: int) -> None:
        """Pay for one operation before it is done.

        Raises:
            OverBudget: It costs more than one may, or than is left.
        """
        self._left -= cost
        if cost > _OPERATION or self._left < 0:
            raise OverBudget

    def enter(self) -> None:
        """Go one level deeper into values within values.

        Raises:
            OverBudget: They are nested too deep.
        """
        self._depth += 1
        if self._depth > _DEPTH:
            raise OverBudget

    def leave(self) -> None:
        """Come back from it."""
        self._depth -= 1


class Opaque:
    """A value of which nothing is known but that it is there: neither called nor asked for anything.

    Each time it is another one, so that it equals nothing, not even itself.
    """

    __slots__ = ()

    def __bool__(self) -> bool:
        raise TypeError("whether it is true is its own affair")


class Items:
    """A list or tuple."""

    __slots__ = ("_budget", "_kind", "_raw")

    def __init__(self, raw: Sequence[Any], kind: type[list[Any] | tuple[Any, ...]], budget: Budget) -> None:
        """Take a list or tuple and which of both it is: its own class may say what it likes."""
        self._raw: Any = raw
        self._kind: Any = kind
        self._budget = budget

    def __len__(self) -> int:
        return int(self._kind.__len__(self._raw))

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            self._budget.spend(len(range(*index.indices(len(self)))))
            return Items(self._kind.__getitem__(self._raw, index), self._kind, self._budget)
        return wrap(self._kind.__getitem__(self._raw, index), self._budget)

    def __iter__(self) -> Iterator[Any]:
        self._budget.spend(_ITEM * len(self))
        return (wrap(each, self._budget) for each in self._kind.__iter__(self._raw))


class Keys:
    """A mapping: a dict, the fields of an object, or any other. Its keys are texts, as in JSON.

    A dict finds a key by its hash: only a key of the same hash and a class of its own is asked whether it
    is the same.
    """

    __slots__ = ("_budget", "_raw")

    def __init__(self, raw: Any, budget: Budget) -> None:
        self._raw = raw
        self._budget = budget

    def __len__(self) -> int:
        return dict.__len__(self._raw)

    def __getitem__(self, key: Any) -> Any:
        found = self.get(key, _ABSENT)
        if found is _ABSENT:
            raise KeyError
        return found

    def __contains__(self, key: Any) -> bool:
        return self.get(key, _ABSENT) is not _ABSENT

    def __iter__(self) -> Iterator[Any]:
        for each in self._keys():
            self._budget.spend(_ITEM)
            yield wrap(each, self._budget)

    def get(self, key: Any, default: Any = None) -> Any:
        """The value under a key, which is a text; a number or None is looked for as its text in JSON.

        Raises:
            TypeError: The key is a view, which no mapping has as a key.
        """
        self._budget.spend(_LOOK + len(key) if type(key) is str else _LOOK)
        if isinstance(key, Items | Keys | Opaque):
            raise TypeError
        found = self._find(next(iter(json_keys([key]))))
        return default if found is _ABSENT else wrap(found, self._budget)

    def _find(self, key: Any) -> Any:
        # Not raw[key]: a defaultdict would be changed by it.
        found = dict.get(self._raw, key, _ABSENT)
        return found if found is not _ABSENT else self._budget.form(self._raw, _by_text).get(key, _ABSENT)

    def _keys(self) -> Iterator[Any]:
        other = self._budget.form(self._raw, _by_text)
        return iter(other) if other else dict.__iter__(self._raw)


class Fields(Keys):
    """The fields of a dataclass or attrs object, without its properties and ``__getattr__``."""

    __slots__ = ("_names",)

    def __init__(self, raw: Any, names: Mapping[str, None], budget: Budget) -> None:
        super().__init__(raw, budget)
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    def _find(self, key: Any) -> Any:
        if key not in self._names:
            return _ABSENT
        self._budget.spend(_STRANGER)
        found = inspect.getattr_static(self._raw, key)
        return found.__get__(self._raw) if type(found) is MemberDescriptorType else found

    def _keys(self) -> Iterator[Any]:
        return iter(self._names)


class Foreign(Keys):
    """A mapping of a class of its own, asked as mappings are asked."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self._raw)

    def _find(self, key: Any) -> Any:
        if key not in self._raw:  # asked first: a mapping over a defaultdict would change it
            return _ABSENT
        return self._raw[key]

    def _keys(self) -> Iterator[Any]:
        return iter(self._raw)


SEEN: Final = frozenset({type(None), bool, float, str, Items, Keys, Fields, Foreign, Opaque})
"""What a condition may have as it is; and a whole number, if it is not too large."""


def wrap(value: Any, budget: Budget) -> Any:
    """A value as a condition may have it: what JSON makes of it, and a view of a container."""
    kind = type(value)
    if kind in SEEN:
        return value if kind is not float or isfinite(value) else plain(value)
    if issubclass(kind, dict):
        return Keys(value, budget)
    if issubclass(kind, list):
        return Items(value, list, budget)
    if issubclass(kind, tuple):
        return Items(value, tuple, budget)
    if issubclass(kind, set | frozenset):
        return Items(budget.form(value, _listed), list, budget)
    if issubclass(kind, Enum):
        return wrap(value.value, budget)
    if issubclass(kind, int | float | str):
        return _scalar(value, kind, budget)
    if issubclass(kind, TEXTS):
        return budget.form(value, plain)
    if kind is MappingProxyType:
        return Foreign(value, budget)
    return _stranger(value, kind, budget)


def _scalar(value: Any, kind: type[Any], budget: Budget) -> Any:
    """A number or text, by the names of the classes themselves: one of its own may say what it likes."""
    if issubclass(kind, float):
        return wrap(float.__float__(value), budget)
    if issubclass(kind, int):
        number = int.__index__(value)
        if -LARGEST <= number <= LARGEST:
            return number
        told = plain(number)  # text, of a very long one
        return told if type(told) is str else Opaque()
    if str.__len__(value) > _OPERATION:
        return Opaque()
    budget.spend(str.__len__(value))
    return str.__str__(value)


def _listed(value: Any) -> list[Any]:
    return list((set if issubclass(type(value), set) else frozenset).__iter__(value))


def _by_text(raw: dict[Any, Any]) -> dict[str, Any]:
    """The values of a dict by the text of their keys; empty where all keys are texts, or have none."""
    kinds = set(map(type, dict.__iter__(raw)))
    if kinds <= {str} or not all(issubclass(kind, _KEYS) for kind in kinds):
        return {}
    return {name: dict.__getitem__(raw, key) for name, key in json_keys(dict.__iter__(raw)).items()}


def _stranger(value: Any, kind: type[Any], budget: Budget) -> Any:
    """A view of a value that is of none of the classes that JSON is made of."""
    bases = _BASES(kind)
    budget.spend(_STRANGER + _ITEM * len(bases))
    if issubclass(kind, Mapping):
        return Foreign(value, budget)
    if is_written(kind):
        return wrap(budget.form(value, plain), budget)
    for base in bases:
        own = _NAMESPACE(base)
        names = _field_names(kind, own.get("__dataclass_fields__"), own.get("__attrs_attrs__"))
        if names:
            budget.spend(_ITEM * len(names))
            return Fields(value, names, budget)
    return Opaque()


def _field_names(kind: type[Any], by_dataclasses: Any, by_attrs: Any) -> dict[str, None]:
    """The names of the fields that a class has by one library or the other; none if it only says so."""
    if type(by_dataclasses) is dict:
        return dict.fromkeys(each.name for each in dataclasses.fields(kind))
    declared = list(tuple.__iter__(by_attrs)) if issubclass(type(by_attrs), tuple) else []
    if all(type(each) is attrs.Attribute for each in declared):
        return dict.fromkeys(each.name for each in declared)
    return {}
