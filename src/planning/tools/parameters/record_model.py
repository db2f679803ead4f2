"""Parameter models of record types: dataclasses, attrs classes, TypedDicts, Structs, signatures."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from itertools import chain, islice
from typing import Any, NoReturn

import jsonschema_rs
import msgspec
import typing_extensions

from planning.errors import Problem, ToolValidationError
from planning.tools.parameters import refusals, rules, words
from planning.tools.parameters.coercion import coerced
from planning.tools.parameters.fields import fields_of
from planning.tools.parameters.first_use import get_to_know
from planning.tools.parameters.model import NO_JSON, Diagnose, ParameterModel
from planning.tools.parameters.schema import published_schema, structural_schema
from planning.tools.parameters.shape_errors import shape_problems
from planning.tools.parameters.strict import built, has_odd_keys, strict_twin, twin_of

__all__ = ["RecordModel"]

_LONG_ARRAY = 1_000


class RecordModel(ParameterModel):
    """A record type as parameter model: msgspec converts, and a JSON Schema finds all that is wrong."""

    kind: Any
    _convert: Callable[..., Any]
    _make: Callable[[Any], Any]

    def __init__(self, kind: Any, *, name: str | None = None, is_open: bool = False) -> None:
        """Take a record type.

        Args:
            kind: The type.
            name: What messages call it; the type's own name when left out.
            is_open: Whether fields that the type does not name are let through.

        Raises:
            TypeError: A type hint cannot be read, or arguments cannot become what it names.
        """
        records = rules.all_records(kind)
        fields = [field for record in records for field in fields_of(record)]
        self.kind = kind
        self.name = kind.__name__ if name is None else name
        self._is_open = is_open
        is_built = any(map(rules.needs_constructor, records))
        if not is_built:
            get_to_know(kind, *records)
        twin = twin_of(kind)
        get_to_know(twin, *(hint for record in records for hint in refusals.hints_of(record).values()))
        self._structure = self._opened(structural_schema(kind))
        self._twin = strict_twin(kind, is_open=is_open)
        # Names of maps that are no text: to look for them takes twice as long, so it is not done for all.
        has_odd = any(has_odd_keys(field.hint) for field in fields)
        self._convert = partial(msgspec.convert, str_keys=True) if has_odd else msgspec.convert
        if is_built:
            self._make = lambda data: built(self._convert(data, twin))
        else:
            self._make = partial(self._convert, type=kind)
        self._has_rules = any(map(rules.has_rules, records))
        self._is_shape_all = not (self._has_rules or is_built or any(map(rules.checks_itself, records)))
        # A flat TypedDict is what its twin holds: msgspec takes several times as long to make one itself.
        is_flat = self._is_shape_all and typing_extensions.is_typeddict(kind) and records == {kind}
        self._flat = tuple(field.name for field in fields_of(kind)) if is_flat else None
        self._repairs = {
            field.name: field.metadata["repair"] for field in fields_of(kind) if "repair" in field.metadata
        }

    def schema(self) -> dict[str, Any]:
        """See ``ParameterModel``."""
        return copy.deepcopy(self._published)

    def convert(self, data: dict[str, Any], diagnose: Diagnose | None = None) -> Any:
        """See ``ParameterModel``."""
        try:
            if self._flat is not None and self._twin is not None:
                try:
                    twin = self._convert(data, self._twin)
                except msgspec.ValidationError:
                    pass
                else:
                    return _given(twin, self._flat)
            if not self._fits(data):
                data = self._repaired(data, diagnose)
        except ToolValidationError:
            raise
        except (ValueError, RecursionError):
            raise ToolValidationError(Problem(NO_JSON, tells=False)) from None
        return self._made(data, diagnose)

    def check(self, data: dict[str, Any]) -> None:
        """See ``ParameterModel``."""
        if not self._is_shape_all or not self._fits(data):
            self.convert(data)

    @cached_property
    def _published(self) -> dict[str, Any]:
        return self._opened(published_schema(self.kind))

    @cached_property
    def _validator(self) -> jsonschema_rs.Validator:
        return jsonschema_rs.validator_for(self._structure, retriever=_no_retrieval)

    def _opened(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {**schema, "additionalProperties": True} if self._is_open else schema

    def _fits(self, data: dict[str, Any]) -> bool:
        """Whether the data has the right shape as it stands; a no may still be a yes after repairs."""
        if self._twin is None:
            return self._validator.is_valid(data)
        try:
            self._convert(data, self._twin)
        except msgspec.ValidationError:
            return False
        return True

    def _repaired(self, data: dict[str, Any], diagnose: Diagnose | None) -> Any:
        """The data taken for what it means, if that has the right shape.

        A long array is looked at from its head: validating all of it only to name a few problems is dear.
        """
        data |= {name: repair(data[name]) for name, repair in self._repairs.items() if name in data}
        repaired: Any = data
        for portion in (_head(data), data):
            repaired = coerced(portion, self._structure, reads_numbers=True)
            problems = list(islice(self._shape_problems(repaired), words.MOST_PROBLEMS))
            if problems:
                self._refuse(chain(problems, self._further(repaired, problems, diagnose)), repaired, diagnose)
        return repaired

    def _made(self, data: dict[str, Any], diagnose: Diagnose | None) -> Any:
        refusal: list[Problem] = []
        value: Any = None
        try:
            value = self._make(data)
        except refusals.REFUSING:
            data = coerced(data, self._structure)  # 2.0 is an integer to JSON Schema, but not to msgspec
            try:
                value = self._make(data)
            except refusals.REFUSING as error:
                refusal = [Problem(refusals.words_of(error))]
        if refusal:  # outside of the handlers: the exceptions hold what was sent
            further = list(islice(self._further(data, [], diagnose), words.MOST_PROBLEMS))
            self._refuse(further or refusal, data, diagnose)
        if diagnose is None and self._has_rules:
            broken = list(rules.rule_problems(self.kind, data, limits=True))
            if broken:
                self._refuse(broken, data, None)
        return {**data, **value} if self._is_open else value

    def _refuse(self, problems: Iterable[Problem], data: Any, diagnose: Diagnose | None) -> NoReturn:
        """Refuse with these problems and what ``diagnose`` adds, each once, and not too many."""
        others = () if diagnose is None else diagnose(data)
        raise words.refusal(chain(problems, others), self._published)

    def _further(self, data: Any, known: list[Problem], diagnose: Diagnose | None) -> Iterator[Problem]:
        """What else is wrong at places that have no problem yet, or whose texts break a rule."""
        places = [problem.path for problem in known]
        for problem in refusals.own_problems(self.kind, data, self._published):
            path = problem.path
            if not any(
                path == place or words.is_within(path, place) or words.is_within(place, path)
                for place in places
            ):
                yield problem
        yield from rules.rule_problems(self.kind, data, limits=diagnose is None)

    def _shape_problems(self, data: Any) -> Iterator[Problem]:
        return shape_problems(self._validator.iter_errors(data), data, self._published, self._structure)


def _given(twin: msgspec.Struct, names: tuple[str, ...]) -> dict[str, Any]:
    """The fields that were not left out."""
    return {name: value for name in names if (value := getattr(twin, name)) is not msgspec.UNSET}


def _head(data: dict[str, Any]) -> dict[str, Any]:
    """The data with its long arrays cut."""
    return {name: value[:_LONG_ARRAY] if isinstance(value, list) else value for name, value in data.items()}


def _no_retrieval(uri: str) -> NoReturn:
    raise ValueError(f"schemas are complete: {uri} is not fetched")
