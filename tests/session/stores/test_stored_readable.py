"""What could not be read back is refused when it is dispatched: no value locks a session."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs
import pytest
from codec_records import Checked
from pydantic import BaseModel
from session_records import Thing
from store_places import SETUP, MemoryPlace, Place, SqlitePlace, mark, open_session, refused

from planning import NewPlanStep, Plan, PlanStep
from planning.plan.commands import AddStep, MarkStep, SetupPlan, UpdateStep
from session import ReducerError, Session, SnapshotError, StoreError, ToolInvoked, append, stored
from session.stores import MemoryStore

Opener = Callable[[], Session]


@pytest.fixture(params=[None, MemoryPlace, SqlitePlace])
def opener(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    """What opens a session with a plan: in a store the same one, as another process would."""
    monkeypatch.setattr(stored, "CHECKPOINT", 2)
    if request.param is None:
        session = open_session(None)
        return lambda: session
    place: Place = request.param(tmp_path)
    return lambda: open_session(place.open())


STEP: Any = PlanStep("S001", "a", None, "done", ["n"])  # type: ignore[arg-type]
UNREADABLE: list[tuple[Any, str]] = [
    (SetupPlan("x" * 241), "objective: 241 characters, at most 240; cut 1"),
    (SetupPlan(5), "objective: expected a string, got int"),  # type: ignore[arg-type]
    (SetupPlan("x", (NewPlanStep("t" * 161),)), "initial_steps[0].title: 161 characters, at most 160; cut 1"),
    (SetupPlan("x", "abc"), "initial_steps: expected a tuple of NewPlanStep"),  # type: ignore[arg-type]
    (AddStep((NewPlanStep("fine", "d\x00"),)), "steps[0].details: a null (U+0000) at character 2; remove it"),
    (
        UpdateStep("S001", "a\nb"),
        'title: a newline (U+000A) at character 2; this field is one line, write " "',
    ),
    (MarkStep("S001", "done", "n" * 600), "note: 600 characters, at most 512; cut 88"),
    (Plan("\ud800", "active"), "objective: a character (U+D800) at character 1; remove it"),
    (Plan("x", "active", (STEP,)), "steps[0].notes: expected tuple, got list"),
]


@pytest.mark.parametrize(("value", "message"), UNREADABLE)
def test_a_dispatched_plan_that_could_not_be_read_back_is_refused(
    opener: Opener, value: object, message: str
) -> None:
    what = (
        "the slice Plan is refused by its type"
        if isinstance(value, Plan)
        else f"{type(value).__name__} is refused"
    )
    session = opener()
    session.dispatch(SETUP)
    before = session.select_latest(Plan)
    for _ in range(4):
        with pytest.raises(ReducerError) as caught:
            session.dispatch(value)
        assert str(caught.value) == f"{what}: {message}"
    assert (session.version, session.select_latest(Plan)) == (1, before)
    for status in ("done", "pending", "done"):
        session.dispatch(MarkStep("S001", status))
    assert opener().select_latest(Plan) == session.select_latest(Plan)
    assert len(opener().history()) == 4


TEXTS = (
    "Fix \u2013 it|Größe|修复它|נסה|👩\u200d💻 code|10\u00a0km|\u0645\u06cc\u200c\u062e\u0648|日本\u3000語"
)


@pytest.mark.parametrize("text", TEXTS.split("|"))
def test_a_plan_holds_any_printable_text(opener: Opener, text: str) -> None:
    session = opener()
    session.dispatch(SetupPlan(text, (NewPlanStep(text, f"{text}\n\t{text}"),)))
    session.dispatch(MarkStep("S001", "in_progress", f"{text}\n{text}"))
    session.dispatch(UpdateStep("S001", text + "!"))
    session.dispatch(SetupPlan(text, (NewPlanStep(text),)))
    plan = Plan(text, "active", (PlanStep("S001", text, None, "pending"),))
    assert opener().select_latest(Plan) == plan
    result = mark(session, "1")
    assert result.success, result
    assert [change.changed for change in opener().history()] == [True] * 5


# Values of a program's own


@dataclass(frozen=True)
class Make:
    what: str


@attrs.frozen
class Even:
    number: int = attrs.field(validator=lambda _self, _field, number: Even.check(number))

    @staticmethod
    def check(number: int) -> None:
        if number % 2:
            raise ValueError(f"{number} is odd")

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "number", self.number + 1)


@dataclass(frozen=True)
class Counted:
    """A record with a field that its constructor does not take."""

    count: int = field(default=0, init=False)


@dataclass(frozen=True)
class Doubled:
    """A record that is another each time that it is built."""

    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", self.count * 2)


@dataclass(frozen=True)
class Due:
    at: datetime | None = None


def counted() -> Counted:
    value = Counted()
    object.__setattr__(value, "count", 5)
    return value


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


MADE: dict[str, Callable[[], object]] = {
    "nan": lambda: Thing(float("nan")),
    "bytes": lambda: Thing(b"x"),
    "another type": lambda: Make("x"),
    "a number": lambda: 5,
    "deep": lambda: Thing(nested(200)),
    "very deep": lambda: Thing(nested(50_000)),
    "a long number": lambda: Thing(10**5_000),
    "a class that is not registered": lambda: Thing(Even),
    "a time as text": lambda: Due("soon"),  # type: ignore[arg-type]
    "a time as a number": lambda: Due(5),  # type: ignore[arg-type]
}


def _make(items: tuple[Any, ...], make: Make) -> tuple[Any, ...]:
    return (*items, MADE[make.what]())


def _registered(session: Session) -> Session:
    session.register_reducer(Make, _make, Thing)
    session.register_reducer(Make, _make_due, Due)
    for kind in (Thing, Counted, Doubled, Even, Due):
        session.register_reducer(kind, append)
    return session


def _make_due(items: tuple[Any, ...], make: Make) -> tuple[Any, ...]:
    return (*items, MADE[make.what]()) if make.what.startswith("a time") else items


@pytest.mark.parametrize("what", MADE)
def test_an_item_that_could_not_be_read_back_is_refused_before_a_checkpoint_holds_it(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(stored, "CHECKPOINT", 2)
    place = MemoryPlace(Path())
    session = _registered(Session(session_id="a", store=place.open()))
    session.dispatch(Thing("1"))
    for _ in range(4):
        with pytest.raises(StoreError) as caught:
            session.dispatch(Make(what))
        assert (caught.value.outcome, "\n" in str(caught.value)) == ("refused", False)
    assert (session.version, session.select_all(Thing)) == (1, (Thing("1"),))
    for number in range(4):
        session.dispatch(Thing(number))
    there = _registered(Session(session_id="a", store=place.open()))
    assert there.select_all(Thing) == session.select_all(Thing)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (counted(), "its count would differ when it is read back"),
        (Doubled(2), "its count would differ when it is read back"),
        (Even(2), "its type refuses it: 3 is odd"),
    ],
    ids=["a field that is not given", "another each time", "refused"],
)
def test_a_record_that_is_not_built_again_as_it_is_is_refused(value: object, message: str) -> None:
    session = _registered(Session(session_id="a", store=MemoryStore()))
    with pytest.raises(StoreError) as caught:
        session.dispatch(value)
    name = f"{type(value).__module__}:{type(value).__qualname__}"
    assert str(caught.value) == f"{type(value).__qualname__}: a {name} cannot be stored: {message}"
    assert session.version == 0


# Events


@dataclass
class Stranger:
    name: str
    inner: Any = None


class Shade(Enum):
    DARK = "dark"


class Model(BaseModel):
    name: str


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (MappingProxyType({"a": 1, "b": [2]}), {"a": 1, "b": [2]}),
        (MappingProxyType({"!": 1, 2: "x"}), {"!": 1, 2: "x"}),
        (Stranger("x", Stranger("y")), {"name": "x", "inner": {"name": "y", "inner": None}}),
        (Model(name="x"), {"name": "x"}),
        (OrderedDict(a=(1,)), {"a": (1,)}),
        (Shade.DARK, "dark"),
        ({"deep": [Stranger("x", MappingProxyType({"a": Model(name="z")}))]},
         {"deep": [{"name": "x", "inner": {"a": {"name": "z"}}}]}),
    ],
)  # fmt: skip
def test_arguments_and_results_of_types_that_are_not_registered_keep_their_fields(
    value: object, read: object
) -> None:
    place = MemoryPlace(Path())
    session = Session(session_id="a", store=place.open())
    session.publish(ToolInvoked("search", value, {"found": value}))
    (event,) = Session(session_id="a", store=place.open()).select_all(ToolInvoked)
    assert (event.params, event.result) == (read, {"found": read})


# Snapshots


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_rollback_names_a_slice_that_is_not_registered(is_stored: bool) -> None:
    source = _registered(open_session(None))
    source.dispatch(Thing("x"))
    source.dispatch(SETUP)
    session = open_session(MemoryStore() if is_stored else None)
    session.dispatch(SetupPlan("mine"))
    with pytest.raises(SnapshotError) as caught:
        session.rollback(source.snapshot())
    assert str(caught.value) == (
        "the snapshot has a slice that is not registered here, session_records:Thing: register its reducers "
        "first, as PlanningToolsSection does for a plan"
    )
    assert (session.version, session.select_latest(Plan)) == (1, Plan("mine", "active"))
    _registered(session).rollback(source.snapshot())
    assert session.select_all(Thing) == (Thing("x"),)


def test_a_session_in_memory_that_has_no_reducers_yet_takes_any_snapshot() -> None:
    source = _registered(Session())
    source.dispatch(Thing("x"))
    session = Session()
    session.rollback(source.snapshot())
    assert session.select_all(Thing) == (Thing("x"),)


def test_a_checkpoint_that_its_type_refuses_by_now_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "CHECKPOINT", 1)
    place = MemoryPlace(Path())

    def opened() -> Session:
        session = Session(session_id="a", store=place.open())
        session.register_reducer(Checked, append)
        return session

    def refuse(_items: object) -> None:
        raise ValueError("no longer")

    opened().dispatch(Checked(1))
    monkeypatch.setattr(Checked, "check_slice", staticmethod(refuse))
    assert refused(lambda: opened().select_all(Checked)) == "the checkpoint of version 1: Checked: no longer"
