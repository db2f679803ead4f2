"""The types that have a JSON form, and the fields of records; `records` writes and reads their values."""

from __future__ import annotations

import dataclasses
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from importlib.util import find_spec
from inspect import signature
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

import attrs
import typing_extensions

from session.errors import RecordError, SnapshotError, shown
from session.events import SessionEvent
from session.slices import present_module, type_name, type_written_as

AS_TEXT: dict[type, Callable[[str], Any]] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    time: time.fromisoformat,
    UUID: UUID,
    Decimal: Decimal,
}
"""Types that are written as text, and how they are read from it."""
NO_DEFAULT = object()
"""The default of a field that is always written: no value of a field is this."""
_AS_IT_IS: frozenset[type] = frozenset({bool, int, str, types.NoneType})
_PLAIN = {*_AS_IT_IS, float, tuple, list, dict, set, frozenset, *AS_TEXT}
_HOOKS = ("__post_init__", "__attrs_post_init__")
_QUALIFIERS = (
    Annotated,
    typing.Final,
    typing_extensions.Required,
    typing_extensions.NotRequired,
    typing_extensions.ReadOnly,
)


@lru_cache(maxsize=256)
def require_plain(kind: Any) -> None:
    """Refuse a class whose values are never built from JSON.

    A record is built by the constructor that dataclasses or attrs wrote for it, never by another.

    Raises:
        SnapshotError: It is neither a dataclass, an attrs class, an enum, a TypedDict nor a plain type.
        NameError: A type hint of a record cannot be resolved.
        TypeError: A type hint is not a type.
    """
    if kind in _PLAIN or issubclass(kind, Enum) or typing_extensions.is_typeddict(kind):
        return
    builder = next(base for base in kind.__mro__ if "__init__" in vars(base))
    if vars(builder).keys().isdisjoint({"__dataclass_fields__", "__attrs_attrs__"}):
        raise SnapshotError(
            f"slice type {shown(type_name(kind))} is not a record: "
            "a snapshot holds dataclasses, attrs classes and plain values"
        )
    parts_of(kind)


def format_of(kind: type) -> int:
    """The number of the format in which a store has values of a class."""
    number: int = getattr(kind, "RECORD_FORMAT", 1)
    return number


def is_record(kind: type) -> bool:
    """True if values of a class have fields that are written: a dataclass or an attrs class."""
    return hasattr(kind, "__dataclass_fields__") or attrs.has(kind)  # half of what is_dataclass takes


@attrs.frozen
class Field:
    """A field of a record, and how it is written and read.

    Attributes:
        name: Its name.
        argument: The constructor's argument for it, under which it is written.
        hint: Its type hint.
        default: None, False or True, where that is the field's default: it is not written. Else
            ``NO_DEFAULT``.
        written: Makes of its value the one to write: the ``snapshot`` of the field's metadata, if there
            is one. A record with such a field compares by what is written, or does not read back equal.
        is_stored: Whether it is written: not where the field's metadata has a ``stored`` that is False.
        plain: The types whose values are written as they are.
        only: The types in its hint, if it names nothing but plain types and the values of a Literal: a value
            of a different type is refused. Else None.
        words: The values of a Literal in its hint.
        text: Reads it where its hint is one of the types that are written as text; and that type.
        of: The record type that its hint names, or that of a tuple's items: such a value needs no name.
        is_tuple: Whether its hint is a tuple.
        is_open: Whether a value of any type may be there: of one that is not registered, its fields are kept.
    """

    name: str
    argument: str
    hint: Any
    default: Any
    written: Callable[[Any], Any] | None
    is_stored: bool
    plain: frozenset[type]
    only: frozenset[type] | None
    words: tuple[Any, ...]
    text: tuple[type, Callable[[str], Any]] | None
    of: type | None
    is_tuple: bool
    is_open: bool


@lru_cache(maxsize=256)
def fields_of(kind: Any) -> tuple[Field, ...]:
    """The fields that a record is made from, in order."""
    hints = typing_extensions.get_type_hints(kind, include_extras=True)
    fields = attrs.fields(kind) if attrs.has(kind) else dataclasses.fields(kind)
    return tuple([_field_of(kind, each, hints.get(each.name, Any)) for each in fields if each.init])


def _field_of(kind: type, field: Any, hint: Any) -> Field:
    members = _members_of(hint)
    texts = [member for member in members if member in AS_TEXT]
    text = (texts[0], AS_TEXT[texts[0]]) if len(texts) == 1 and str not in members else None
    tuples = [member for member in members if get_origin(member) is tuple]
    parts = [part for each in tuples for part in get_args(each) if part is not ...] or members
    records = [part for part in parts if isinstance(part, type) and is_record(part)]
    words = tuple(word for each in members if get_origin(each) is Literal for word in get_args(each))
    only = frozenset(each for each in members if get_origin(each) is not Literal)
    is_closed = only <= _PLAIN
    return Field(
        name=field.name,
        argument=getattr(field, "alias", None) or field.name,
        hint=hint,
        default=next((each for each in (None, False, True) if each is field.default), NO_DEFAULT),
        written=field.metadata.get("snapshot"),
        is_stored=field.metadata.get("stored", True),
        plain=(_AS_IT_IS & only if is_closed else _AS_IT_IS).difference({str} if text else ()),
        only=(only | {int} if float in only else only) if is_closed else None,
        words=words,
        text=text,
        of=records[0]
        if len(records) == 1 and len(records) == len(parts) - parts.count(types.NoneType)
        else None,
        is_tuple=bool(tuples),
        # A session event records what happened; what is reduced must be what it was.
        is_open=issubclass(kind, SessionEvent) and Any in members and field.name != "value",
    )


@lru_cache(maxsize=256)
def parts_of(kind: type) -> tuple[type, ...]:
    """The records and enums that the hints of a record's fields name.

    Raises:
        NameError: A hint cannot be resolved.
        TypeError: A hint is not a type.
    """
    named = {part for field in fields_of(kind) for part in _find_named(field.hint)}
    return tuple(part for part in named if is_record(part) or issubclass(part, Enum))


def _bare(hint: Any) -> Any:
    """A hint without what does not change its values: a qualifier, a NewType."""
    while True:
        if get_origin(hint) in _QUALIFIERS:
            hint = get_args(hint)[0]
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        else:
            return hint


def _members_of(hint: Any) -> list[Any]:
    """The types that a hint allows."""
    hint = _bare(hint)
    return (
        [_bare(member) for member in get_args(hint)]
        if get_origin(hint) in {Union, types.UnionType}
        else [hint]
    )


def _find_named(hint: Any) -> Iterator[type]:
    """The classes that a hint names, at any depth."""
    open_, seen = [hint], list[Any]()  # an alias or a TypedDict may name itself
    while open_:
        found = _bare(open_.pop())
        if found in seen:
            continue
        seen.append(found)
        if type(found).__name__ == "TypeAliasType":  # of typing or of typing_extensions: two classes
            open_.append(found.__value__)
        elif typing_extensions.is_typeddict(found):
            open_ += typing_extensions.get_type_hints(found).values()
        elif isinstance(found, type):
            yield found
        open_ += get_args(found)


def spelled(hint: Any) -> str:
    """A hint as a message has it."""
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def loaded_type(name: str) -> type:
    """A class of a loaded module, by its written name: reading never imports one.

    Raises:
        SnapshotError: There is none, or its values are never built from JSON.
    """
    found = _load(name)
    if found is None:
        raise SnapshotError(
            f"slice type {shown(name)} is not loaded: import its module first, or pass the class in types="
        )
    require_plain(found)
    return found


def _load(name: str) -> type | None:
    module, _, path = name.partition(":")
    found: Any = type_written_as(name)
    if found is None:
        found = sys.modules.get(present_module(module))
        for part in path.split("."):
            # Not getattr: a module may import on demand what it does not hold.
            found = vars(found).get(part) if isinstance(found, (types.ModuleType, type)) else None
    return found if isinstance(found, type) else None


def is_found(name: str) -> bool:
    """True if the class of a written name is loaded, or its module could be imported and names it."""
    module, _, path = name.partition(":")
    module = present_module(module)
    if module in sys.modules:
        return _load(name) is not None
    where: Any = None
    spec: Any = None
    parts = module.split(".")
    try:
        for end in range(1, len(parts) + 1):  # as importing it does, without running its packages
            package = ".".join(parts[:end])
            specs = (finder.find_spec(package, where) for finder in sys.meta_path)
            spec = sys.modules.get(package) or next(filter(None, specs))
            where = getattr(spec, "__path__", None) or spec.submodule_search_locations or []
        source = spec.loader.get_source(module)
    except Exception:  # noqa: BLE001 - any program may have finders of its own, and a name may be any text
        return _is_moved(module)
    return source is None or re.search(rf"\b{re.escape(path.partition('.')[0])}\b", source) is not None


def _is_moved(module: str) -> bool:
    """True if a package that is not loaded lists a module as the first place of one that has moved."""
    with suppress(Exception):  # as above
        root = module.partition(".")[0]
        loader: Any = find_spec(root).loader  # type: ignore[union-attr]  # without one it is not found
        return root not in sys.modules and f'"{module}"' in loader.get_source(root)
    return False


@lru_cache(maxsize=256)
def compared(kind: Any) -> tuple[str, ...]:
    """The fields by which to see whether a record is built again as it is.

    None where the class runs no code of its own, which could change them.
    """
    fields: Any = attrs.fields(kind) if attrs.has(kind) else dataclasses.fields(kind)
    stored = [field.name for field in fields_of(kind) if field.is_stored]
    is_hooked = any(_is_hooked(field) for field in fields) or any(hasattr(kind, name) for name in _HOOKS)
    if len(stored) == len(fields) and not is_hooked:
        return ()
    return (*stored, *[each.name for each in fields if not each.init and getattr(each, "compare", True)])


def _is_hooked(field: Any) -> bool:
    """True if code of a class sees a field's value; that of the events of this package changes none."""
    hooks = (getattr(field, "converter", None), getattr(field, "validator", None))
    return any(hook is not None and hook.__module__ != "session.events" for hook in hooks)


@lru_cache(maxsize=256)
def _is_row(kind: Any) -> bool:
    """True if a record is nothing but its fields, all written, which its constructor takes in their order."""
    if issubclass(kind, Enum) or compared(kind) or not fields_of(kind):
        return False
    fields, taken = fields_of(kind), signature(kind).parameters.values()
    names = [field.argument for field in fields]
    is_whole = all(field.default is NO_DEFAULT and field.written is None for field in fields)
    return (
        is_whole
        and names == [each.name for each in taken if each.kind is each.POSITIONAL_OR_KEYWORD][: len(names)]
    )


def columns_of(items: Sequence[Any], kind: Any, *, is_json: bool) -> list[list[Any]] | None:
    """The values to read or write of several records, a list for each field: many are taken at once.

    None where they are to be taken one by one: a value is not plain, or something is wrong.
    """
    columns: list[list[Any]] = []
    fields = fields_of(kind)
    given, many, made = (dict, list, tuple) if is_json else (kind, tuple, list)
    if not _is_row(kind) or {*map(type, items)} != {given}:
        return None
    if is_json and {*map(len, items)} != {len(fields)}:
        return None
    for field in fields:
        name = field.argument if is_json else field.name
        try:
            column = [item[name] for item in items] if is_json else [getattr(item, name) for item in items]
        except (KeyError, AttributeError):
            return None
        kinds = {*map(type, column)}
        if kinds <= field.plain or (kinds == {str} and field.words and {*column} <= {*field.words}):
            columns.append(column)
        elif field.is_tuple and kinds == {many} and {type(text) for part in column for text in part} <= {str}:
            columns.append([*map(made, column)])
        else:
            return None
    return columns


def require_same(value: Any, kind: Any, names: tuple[str, ...]) -> None:
    """Refuse a record that would not be read back as it is.

    Raises:
        RecordError: That is so.
    """
    try:
        built = kind(
            **{field.argument: getattr(value, field.name) for field in fields_of(kind) if field.is_stored}
        )
        changed = [name for name in names if getattr(value, name) != getattr(built, name)]
    except Exception as error:
        raise RecordError(f"a {type_name(kind)} cannot be stored: its type refuses it: {error}") from error
    if changed:
        raise RecordError(
            f"a {type_name(kind)} cannot be stored: its {changed[0]} would differ when it is read back"
        )
