"""Sessions beside a naive model; reducers and logs as plain functions of lists."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from session_records import Ping, called, ping, words_of

from laws import check_reducer_laws
from session import (
    Reducer,
    Session,
    SessionView,
    Snapshot,
    ToolInvoked,
    Transaction,
    VersionError,
    append,
    append_part,
    keep_last,
    replace_latest,
    replace_latest_by,
    select_all,
    select_latest,
    select_where,
    upsert_by,
)
from session.slices import LateLog, Log


@dataclass(frozen=True)
class Item:
    """What is dispatched; five slices keep it in five ways."""

    number: int


Last3, Upserted, Latest, Evens = (type(name, (), {}) for name in ("Last3", "Upserted", "Latest", "Evens"))


def parity(item: Item) -> int:
    return item.number % 5


def evens(slice_: tuple[Item, ...], event: Item) -> tuple[Item, ...]:
    """Refuses negative numbers, and gives the slice back for odd ones."""
    if event.number < 0:
        raise ValueError("negative")
    return (*slice_, event) if event.number % 2 == 0 else slice_


@dataclass(frozen=True)
class Echo:
    """What an item entails: before it is reduced, behind it, or not."""

    number: int


def entail(item: Item, transaction: Transaction) -> tuple[Echo, ...]:
    if item.number < 2:
        transaction.dispatch(Echo(item.number))
    if item.number < -1:
        raise ValueError("less than -1")
    return (Echo(item.number),) if item.number > 7 else ()


REDUCERS: dict[type, Reducer] = {
    Item: append,
    Last3: keep_last(3),
    Upserted: upsert_by(parity),
    Latest: replace_latest,
    Evens: evens,
}
KINDS = (*REDUCERS, Echo)
HISTORY = 4
State = dict[type, tuple[Any, ...]]


class Model:
    """A session as one would write it without any cleverness."""

    def __init__(self, history: int | None) -> None:
        self.history = history
        self.state: State = {}
        self.log: State = {}
        self.versions = [(self.state, self.log)]

    def dispatch(self, item: Item) -> None:
        if item.number >= 0:
            after = {
                kind: tuple(reducer(self.state.get(kind, ()), item)) for kind, reducer in REDUCERS.items()
            }
            if item.number < 2 or item.number > 7:
                after[Echo] = (*self.state.get(Echo, ()), Echo(item.number))
            self.state = self.state | {
                kind: items for kind, items in after.items() if items or kind in self.state
            }

    def publish(self, event: Ping | ToolInvoked) -> None:
        entries = (*self.log.get(type(event), ()), event)
        self.log = {**self.log, type(event): entries[-(self.history or 0) :]}

    def commit(self) -> None:
        if self.versions[-1][0] is not self.state or self.versions[-1][1] is not self.log:
            self.versions = [*self.versions, (self.state, self.log)]


def attempt(work: Callable[[Item], object], number: int) -> None:
    """Dispatch; a negative number is refused by one of the reducers, or by the guard."""
    try:
        work(Item(number))
    except ValueError:
        assert number < 0


def check_selectors(
    source: Session | SessionView | Snapshot, kind: type[Any], expected: tuple[Any, ...]
) -> None:
    assert select_latest(source, kind) == (expected[-1] if expected else None)
    assert select_all(source, kind) == expected
    odd = tuple(each for each in expected if each.number % 2)
    assert select_where(source, kind, lambda each: each.number % 2 == 1) == odd


class SessionMachine(RuleBasedStateMachine):
    """Several sessions, clones among them, and every snapshot that was ever taken."""

    snapshots = Bundle("snapshots")
    which = st.integers(0, 10)
    values = st.integers(-2, 9)

    def __init__(self) -> None:
        super().__init__()
        self.pairs = [(Session(history=history), Model(history)) for history in (HISTORY, None)]
        for session, _ in self.pairs:
            for kind, reducer in REDUCERS.items():
                session.register_reducer(Item, reducer, kind)
            session.register_reducer(Echo, append)
            session.register_guard(Item, entail)
        self.taken: list[tuple[Snapshot, State]] = []

    def pick(self, which: int) -> tuple[Session, Model]:
        return self.pairs[which % len(self.pairs)]

    @rule(which=which, number=values)
    def dispatch(self, which: int, number: int) -> None:
        session, model = self.pick(which)
        attempt(session.dispatch, number)
        model.dispatch(Item(number))
        model.commit()

    @rule(which=which, numbers=st.lists(values, min_size=30, max_size=70))
    def dispatch_many(self, which: int, numbers: list[int]) -> None:
        for number in numbers:
            self.dispatch(which, number)

    @rule(which=which, number=values)
    def publish(self, which: int, number: int) -> None:
        session, model = self.pick(which)
        event = ping(session, number)
        assert session.publish(event).ok
        model.publish(event)
        model.commit()

    @rule(which=which, number=values)
    def call(self, which: int, number: int) -> None:
        session, model = self.pick(which)
        event = called(session, Item(number))
        attempt(lambda _: session.publish(event), number)
        model.dispatch(Item(number))
        if number >= 0:
            model.publish(event)
        model.commit()

    @rule(which=which, outer=st.lists(values, max_size=4), inner=st.lists(values, max_size=4), fails=st.sets(
        st.sampled_from(["outer", "inner"])
    ))  # fmt: skip
    def transact(self, which: int, outer: list[int], inner: list[int], fails: set[str]) -> None:
        session, model = self.pick(which)
        kept = copy.copy(model)
        try:
            with session.transaction() as transaction:
                for number in outer:
                    attempt(transaction.dispatch, number)
                    kept.dispatch(Item(number))
                before_inner = copy.copy(kept)
                try:
                    with session.transaction() as nested:
                        for number in inner:
                            attempt(nested.dispatch, number)
                            kept.dispatch(Item(number))
                            event = ping(session, number)
                            nested.publish(event)
                            kept.publish(event)
                            assert nested.latest(Ping) == event
                            assert session.select_all(Ping) == kept.log[Ping]
                            self.taken.append((session.snapshot(), kept.state))
                        if "inner" in fails:
                            raise KeyError
                except KeyError:
                    kept = before_inner
                assert session.select_all(Item) == kept.state.get(Item, ())
                if "outer" in fails:
                    raise LookupError
        except LookupError:
            kept = model
        model.state, model.log = kept.state, kept.log
        model.commit()

    @rule(target=snapshots, which=which)
    def snapshot(self, which: int) -> tuple[Snapshot, State]:
        session, model = self.pick(which)
        pair = (session.snapshot(), model.state)
        self.taken.append(pair)
        return pair

    @rule(which=which, pair=snapshots)
    def rollback(self, which: int, pair: tuple[Snapshot, State]) -> None:
        session, model = self.pick(which)
        session.rollback(pair[0])
        model.state = dict(pair[1])
        model.commit()

    @rule(which=which)
    def reset(self, which: int) -> None:
        session, model = self.pick(which)
        session.reset()
        model.state = {}
        model.commit()

    @rule(which=which, back=st.integers(0, 80))
    def rewind(self, which: int, back: int) -> None:
        session, model = self.pick(which)
        version = max(0, session.version - back)
        if self.is_kept(model, version):
            assert session.rewind(version) == session.version
            model.state = dict(model.versions[version][0])
            model.commit()

    @rule(which=which, back=st.integers(0, 80))
    def look_back(self, which: int, back: int) -> None:
        session, model = self.pick(which)
        version = max(0, session.version - back)
        if not self.is_kept(model, version):
            with pytest.raises(VersionError):
                session.at(version)
            return
        past, (state, log) = session.at(version), model.versions[version]
        for kind in KINDS:
            check_selectors(past, kind, state.get(kind, ()))
        check_selectors(past, Ping, log.get(Ping, ()))
        assert past.select_all(ToolInvoked) == log.get(ToolInvoked, ())
        assert [change.version for change in session.history(version)] == list(
            range(version + 1, session.version + 1)
        )

    @rule(which=which, back=st.integers(0, 80))
    def fork(self, which: int, back: int) -> None:
        session, model = self.pick(which)
        version = max(0, session.version - back)
        if len(self.pairs) < 6 and self.is_kept(model, version):
            twin = Model(model.history)
            twin.versions = model.versions[: version + 1]
            twin.state, twin.log = twin.versions[-1]
            self.pairs.append((session.fork(version), twin))

    @staticmethod
    def is_kept(model: Model, version: int) -> bool:
        return model.history is None or version >= len(model.versions) - 1 - model.history

    @rule(which=which, pair=consumes(snapshots))
    def rollback_that_is_given_up(self, which: int, pair: tuple[Snapshot, State]) -> None:
        session, _ = self.pick(which)
        with suppress(LookupError), session.transaction():
            session.rollback(pair[0])
            session.dispatch(Item(7))
            raise LookupError

    @rule(which=which)
    def clone(self, which: int) -> None:
        session, model = self.pick(which)
        if len(self.pairs) < 5:
            self.pairs.append((session.clone(), copy.copy(model)))

    @invariant()
    def every_commit_is_a_version(self) -> None:
        for session, model in self.pairs:
            assert session.version == len(model.versions) - 1

    @invariant()
    def every_session_is_what_its_model_is(self) -> None:
        for session, model in self.pairs:
            for kind in KINDS:
                check_selectors(session, kind, model.state.get(kind, ()))
            check_selectors(session, Ping, model.log.get(Ping, ()))
            assert session.select_all(ToolInvoked) == model.log.get(ToolInvoked, ())
            check_selectors(session, object, ())

    @invariant()
    def no_snapshot_ever_changes(self) -> None:
        for snapshot, state in self.taken:
            slices = {kind: items for kind, items in snapshot.slices.items() if items or kind in state}
            assert slices == state  # a fork has empty slices of later versions, too
            check_selectors(snapshot, Item, state.get(Item, ()))


TestSessionMachine = SessionMachine.TestCase
TestSessionMachine.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


# Reducers and logs


class Row(NamedTuple):
    key: str
    value: int


row_key = attrgetter("key")
ROWS = st.builds(Row, st.sampled_from("abc"), st.integers(0, 3))
SLICES = st.lists(ROWS, max_size=6).map(tuple)
BY_NAME: dict[str, Reducer] = {
    "append": append,
    "keep_last_1": keep_last(1),
    "keep_last_3": keep_last(3),
    "upsert_by": upsert_by(row_key),
    "replace_latest": replace_latest,
    "replace_latest_by": replace_latest_by(row_key),
}


@pytest.mark.parametrize("name", BY_NAME)
@given(slice_=SLICES, event=ROWS)
def test_every_reducer_keeps_the_laws(name: str, slice_: tuple[Row, ...], event: Row) -> None:
    check_reducer_laws(BY_NAME[name], slice_, event)


@given(events=st.lists(ROWS))
def test_one_item_for_each_key_in_order_of_first_or_of_last_sight(events: list[Row]) -> None:
    upserted, replaced, keys = tuple[Row, ...](), tuple[Row, ...](), tuple[Any, ...]()
    first, last = dict[str, Row](), dict[str, Row]()
    for event in events:
        upserted = upsert_by(row_key)(upserted, event)
        replaced = replace_latest_by(row_key)(replaced, event)
        keys = append_part(row_key)(keys, event)
        last.pop(event.key, None)
        first[event.key] = last[event.key] = event
    assert (upserted, replaced) == (tuple(first.values()), tuple(last.values()))
    assert keys == tuple(event.key for event in events)


@pytest.mark.parametrize("limit", [0, -1, 2.5, "3"])
def test_a_limit_that_is_no_whole_number_of_at_least_one_is_refused(limit: Any) -> None:
    message = f"limit must be a whole number of at least 1, got {limit!r}"
    assert words_of(ValueError, keep_last, limit) == message


@pytest.mark.parametrize("first", [Log, lambda: Log(("a", "b")), lambda: LateLog(lambda: ("a", "b"))])
@given(st.lists(st.integers(0, 3), max_size=80), st.none() | st.integers(1, 40))
@example([0] * 80, 2)
@example([0, 1, 1, 0], None)
def test_each_log_has_entries_of_its_own(first: Any, pushes: list[int], limit: int | None) -> None:
    logs = [(first(), first().items)]
    for number, back in enumerate(pushes):
        log, items = logs[max(len(logs) - 1 - back, 0)]
        items = (*items, number) if limit is None else (*items, number)[-limit:]
        logs.append((log.push(number, limit), items))
    for log, items in logs:
        assert (log.latest, log.alike().items, log.items) == (items[-1] if items else None, items, items)
        assert log == log.alike() == items and hash(log) == hash(items)
        assert log != [*items]
