"""The session: identity, family, reducers, views, versions, events on a shared bus, what it refuses."""

from __future__ import annotations

import gc
import logging
import tracemalloc
import weakref
from collections.abc import Callable
from datetime import datetime
from functools import partial
from itertools import product
from operator import eq
from typing import Any
from unittest.mock import Mock

import pytest
from codec_records import Checked
from session_records import (
    Count,
    LoudPing,
    Note,
    Ping,
    Thing,
    called,
    collect_from_here,
    note_session,
    numbers,
    ping,
    printed,
    texts,
    words_of,
)
from syrupy.assertion import SnapshotAssertion

from session import (
    Commit,
    InProcessEventBus,
    PromptExecuted,
    ReducerError,
    Session,
    SnapshotError,
    ToolFailed,
    ToolInvoked,
    append,
    keep_last,
    replace_latest,
    select_all,
    select_latest,
)
from session.history import KeptChange, Slices
from session.stores import MemoryStore

NO_SESSION: list[dict[str, Any]] = [
    {"created_at": datetime(2024, 5, 6)},
    *({"tags": tags} for tags in ({"run": 7}, {7: "run"}, {"run": None}, {"a": "b", "c": b"d"})),
    *({"history": history} for history in (0, -3, 2.5, "3")),
    *({"parent": "run-7"}, {"parent": type("Unshown", (), {"__repr__": None})()}, {"session_id": 5}),
]


def test_what_no_session_is_made_of_is_refused(snapshot: SnapshotAssertion) -> None:
    lines = list[str]()
    for given in NO_SESSION:
        with pytest.raises((ValueError, TypeError)) as caught:
            Session(**given)
        lines.append(f"{caught.typename}: {caught.value}")
    assert "\n".join(lines) == snapshot


def test_tags_are_a_copy_that_nobody_can_change() -> None:
    given = {"run": "7"}
    session = Session(tags=given)
    given["run"] = "8"
    tags: Any = session.tags
    with pytest.raises(TypeError, match="does not support item assignment"):
        tags["run"] = "9"
    assert dict(session.tags) == {"run": "7"}


def test_a_parent_keeps_and_lists_its_children_in_order_until_they_are_closed() -> None:
    collect_from_here()
    parent = Session()
    ids = [Session(parent=parent).session_id for _ in range(3)]
    gc.collect()
    first, *others = parent.children
    assert [child.session_id for child in parent.children] == ids
    assert (first.parent, first.children) == (parent, ())
    for _ in range(2):
        first.close()
        assert parent.children == tuple(others)
    assert first.parent is parent
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None


def test_a_child_whose_bus_refuses_it_is_not_listed() -> None:
    parent, bus = Session(), Mock(subscribe=Mock(side_effect=OSError("no")))
    assert words_of(OSError, Session, bus=bus, parent=parent) == "no"
    assert parent.children == ()


def add(name: str, slice_: tuple[Any, ...], event: object) -> tuple[Any, ...]:
    """A reducer that keeps an attribute of each event."""
    return (*slice_, getattr(event, name))


def test_a_reducer_answers_its_type_exactly_and_no_subclass(session: Session) -> None:
    session.register_reducer(Ping, partial(add, "number"), slice_type=int)
    session.publish(ping(session, 1))
    session.publish(LoudPing(2, session_id=session.session_id))
    assert session.select_all(int) == (1,)
    assert numbers(session.select_all(LoudPing)) == [2]


def test_reducers_of_one_type_run_in_the_order_of_registration_and_each_once(session: Session) -> None:
    texts, lengths = partial(add, "text"), lambda slice_, event: (*slice_, str(len(event.text)))
    for reducer in (texts, lengths, texts):
        session.register_reducer(Note, reducer, slice_type=str)
    session.dispatch(Note("a"))
    assert session.select_all(str) == ("a", "1")


def test_a_check_refuses_an_event_in_place_of_the_type_of_its_slice(session: Session) -> None:
    def require_text(note: Note) -> None:
        if not note.text:
            raise ValueError("it is empty")

    session.register_reducer(Note, append, check=require_text)
    session.register_reducer(Checked, append, check=lambda _: None)
    session.dispatch(Note("a"))
    session.dispatch(Checked(0))
    assert words_of(ReducerError, session.dispatch, Note("")) == "Note is refused: it is empty"
    assert (texts(session), session.select_all(Checked), session.version) == (["a"], (Checked(0),), 2)


@pytest.mark.parametrize("has_own", [False, True])
@pytest.mark.parametrize("is_stored", [False, True])
def test_a_session_registers_what_is_registered_with_another(has_own: bool, is_stored: bool) -> None:
    store, heard = MemoryStore() if is_stored else None, list[object]()
    other, session = (Session(session_id=name, store=store) for name in ("other", "session"))
    if has_own:
        session.register_reducer(Count, append)
    other.register_reducer(Note, append)
    other.register_guard(Note, lambda note, _: () if note.text == "end" else (Note("end"),))
    other.register_view(Thing, lambda select: tuple(map(Thing, select(Note))))
    other.register_types(LoudPing)
    other.publish_on_change(Note, Ping, lambda made: Ping(made.version, session_id=made.session_id))
    for _ in range(2):
        session.register_like(other)
    other.register_reducer(Count, append)
    session.bus.subscribe(Ping, heard.append)
    for value in (Note("a"), Count(1)):
        session.dispatch(value)
    things = (Thing(Note("a")), Thing(Note("end")))
    assert (texts(session), session.select_all(Thing)) == (["a", "end"], things)
    assert [each.number for each in heard if isinstance(each, Ping)] == [1]
    assert session.select_all(Count) == ((Count(1),) if has_own else ())
    session.publish(LoudPing(7))
    assert [type(each) for each in session.history()[-1].events] == [LoudPing]
    session.publish(called(session, Note("b")))  # what its guard adds comes behind the call
    assert session.history()[-1].events[1:] == (Note("end"),)


async def later(*_arguments: Any) -> tuple[Any, ...]:
    return ()


class Later:
    async def __call__(self, *_arguments: Any) -> tuple[Any, ...]:
        return ()


ROLES: list[Callable[[Session, Any], object]] = [
    lambda session, given: session.register_reducer(Note, given),
    lambda session, given: session.register_view(Note, given),
    lambda session, given: session.register_reducer(Note, append, check=given),
    lambda session, given: session.register_guard(Note, given),
    lambda session, given: session.publish_on_change(Note, Ping, given),
    lambda session, given: session.bus.subscribe(Note, given),
]


def test_what_a_session_cannot_call_is_refused(session: Session, snapshot: SnapshotAssertion) -> None:
    given = ("print", later, Later(), partial(later))
    lines = [words_of(TypeError, register, session, each) for register in ROLES for each in given]
    assert "\n".join(lines) == snapshot
    assert session.publish(ping(session)).failures == ()


def test_a_type_that_is_no_class_is_refused(session: Any) -> None:
    message = "event_type and slice_type must be classes, got 'Note'"
    for register, *given in (
        (session.register_reducer, "Note", append),
        (session.register_reducer, Note, append, "Note"),
        (session.register_view, "Note", print),
    ):
        assert words_of(TypeError, register, *given) == message
    message = "event_type must be a class, got 'Note'"
    assert words_of(TypeError, session.bus.subscribe, "Note", print) == message


def test_each_event_that_is_made_of_a_commit_is_published_if_the_slice_changed(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    commits, heard = list[Commit[Note]](), list[object]()
    error = ValueError("the secret")

    def fail(_commit: Commit[Note]) -> None:
        raise error

    session.register_reducer(Note, replace_latest)
    for event_type, make in ((Count, commits.append), (Count, fail), (Ping, None), (Thing, Thing)):
        session.publish_on_change(Note, event_type, make or (lambda _: pytest.fail("nobody hears it")))
    session.publish_on_change(Note, Count, commits.append)  # again
    session.publish_on_change(Note, Count, lambda commit: Count(commit.version))
    session.publish_on_change(Note, Note, lambda _: None)
    for kind in (Count, Thing, type(None)):
        session.bus.subscribe(kind, heard.append)
    with caplog.at_level(logging.DEBUG), session.transaction(actor="ada", call_id="c1") as transaction:
        transaction.dispatch(Note("a"))
    session.publish(LoudPing(1))
    session.reset()
    of = session.session_id
    first = Commit(None, Note("a"), 1, "ada", "c1", "session", of)
    assert commits == [first, Commit(Note("a"), None, 3, None, None, "session", of)]
    assert heard == [Thing(first), Count(1), Thing(commits[1]), Count(3)]
    assert caplog.record_tuples == [("session.session", logging.ERROR, "announcement_failed")] * 2
    names = {(vars(each)["event"], vars(each)["error"], vars(each)["handler"]) for each in caplog.records}
    assert names == {("Announcement", "ValueError", f"{__name__}.{fail.__qualname__}")}


def test_what_a_reducer_raises_is_raised_and_on_the_bus_and_nothing_is_reduced(session: Session) -> None:
    session.register_reducer(Note, partial(eq))
    session.register_reducer(ToolInvoked, append)
    session.register_reducer(ToolInvoked, partial(add, "name"), slice_type=str)
    (failure,) = session.bus.publish(called(session, Note("a"))).failures
    heard: list[object] = []
    session.bus.subscribe(object, heard.append)
    message = "reducer functools.partial(<built-in function eq>) returned bool; it must return a tuple"
    assert words_of(ReducerError, session.publish, called(session, Note("a"))) == message
    session.register_reducer(Count, eq)
    assert words_of(ReducerError, session.dispatch, Count(1)).startswith("reducer eq returned bool;")
    assert (type(failure.error), str(failure.error)) == (ReducerError, message)
    assert (heard, session.version) == ([], 0)
    assert [session.select_all(kind) for kind in (ToolInvoked, Note, str)] == [()] * 3


def test_the_value_is_reduced_before_the_event_whoever_publishes(session: Session) -> None:
    for kind, name in ((Note, "text"), (ToolInvoked, "name"), (PromptExecuted, "key")):
        session.register_reducer(kind, partial(add, name), slice_type=str)
    session.publish(called(session, Note("value 1"), "event 1"))
    session.bus.publish(called(session, Note("value 2"), "event 2"))
    with session.transaction() as transaction:
        transaction.publish(called(session, Note("value 3"), "event 3"))
    session.dispatch(called(session, Note("value 4"), "event 4"))
    session.publish(PromptExecuted("ns", "event 5", "...", Note("value 5")))
    expected = [f"{what} {number}" for number in range(1, 6) for what in ("value", "event")]
    assert list(session.select_all(str)) == list(session.at(5).select_all(str)) == expected
    assert len(session.select_all(ToolInvoked)) == 4


@pytest.mark.parametrize("history", [None, 7_000])
def test_an_event_costs_the_same_however_long_the_log_is(history: int | None) -> None:
    session = Session(history=history)
    events = [ping(session, number) for number in range(10_000)]
    for event in events[:-100]:
        session.publish(event)
    peaks = []
    tracemalloc.start()
    try:
        for event in events[-100:]:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            session.publish(event)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    # A copy of the log would take 56,000 bytes at least; its buffer grows now and then.
    assert sum(peak > 20_000 for peak in peaks) <= 1


def test_a_reducer_that_comes_after_the_log_keeps_its_events_and_all_other_slices(session: Session) -> None:
    session.register_reducer(Note, append)
    session.publish(called(session, Note("a")))
    for number in range(3):
        session.publish(ping(session, number))
    session.register_reducer(Ping, keep_last(2))
    assert (session.select_all(Note), len(session.select_all(ToolInvoked))) == ((Note("a"),), 1)
    assert numbers(session.select_all(Ping)) == [0, 1, 2]
    session.publish(ping(session, 3))
    assert numbers(session.select_all(Ping)) == [2, 3]


def test_what_an_event_carries_does_not_change_with_its_makers_containers(session: Session) -> None:
    params: dict[str, Any] = {"a": [1, {"b": {2}}], "c": ([3],)}
    given = {"a": [1, {"b": {2}}], "c": ([3],)}
    session.publish(ToolInvoked("t", params, params))
    session.publish(ToolFailed("t", params))
    session.publish(PromptExecuted("ns", "key", params))
    params["a"][1]["b"].add(4)
    params["c"][0].append(4)
    params.pop("a")
    (invoked,), (failed,) = session.select_all(ToolInvoked), session.select_all(ToolFailed)
    (executed,) = session.select_all(PromptExecuted)
    assert [invoked.params, invoked.result, failed.result, executed.result] == [given] * 4
    loop: list[object] = []
    loop.append(loop)
    assert ToolInvoked("t", loop, None).params is loop


def test_only_a_snapshot_can_be_rolled_back_to(session: Session) -> None:
    wrong: Any = {}
    assert words_of(SnapshotError, session.rollback, wrong) == "rollback takes a Snapshot, got dict"


def test_a_clone_shares_the_bus_and_the_tags_and_has_an_identity_of_its_own() -> None:
    session = Session(tags={"run": "7"}, parent=Session())
    clone = session.clone()
    assert (clone.bus, dict(clone.tags)) == (session.bus, {"run": "7"})
    assert clone.session_id != session.session_id
    assert (clone.parent, session.children) == (None, ())


def test_a_version_is_reduced_by_the_reducers_of_its_time() -> None:
    session = Session()
    session.publish(called(session, Note("nobody keeps it")))
    session.register_reducer(Note, append)
    session.dispatch(Note("a"))
    session.register_reducer(Note, lambda slice_, note: (*slice_, Count(len(note.text))), Count)
    session.dispatch(Note("bc"))
    states = [(texts(session.at(v)), session.at(v).select_all(Count)) for v in range(4)]
    assert states == [([], ()), ([], ()), (["a"], ()), (["a", "bc"], (Count(2),))]


@pytest.mark.parametrize("version", [0, 1, 40, 42])
def test_a_fork_and_a_clone_have_private_slices_as_they_are_now_and_keep_them_private(version: int) -> None:
    session = note_session()
    session.register_reducer(Count, replace_latest, is_private=True)
    session.dispatch(Count(1))
    for number in range(41):
        session.dispatch(Note(str(number)))
    with session.transaction() as transaction:
        transaction.publish(called(session, Count(2)))
        for text in ("last", "end"):
            transaction.dispatch(Note(text))
    assert session.history(41)[0].events[1:] == (Note("last"), Note("end"))
    for copy in (session.fork(version), session.clone()):
        assert copy.select_all(Count) == session.at(version).select_all(Count) == (Count(2),)
        before = copy.version
        copy.dispatch(Count(3))
        assert (copy.version, Count in copy.snapshot().slices) == (before, False)
    assert session.select_all(Count) == (Count(2),)


def test_a_session_that_keeps_few_changes_forgets_their_keys() -> None:
    session = Session(history=2)
    for number in range(100):
        session.publish(ToolInvoked("tool", {}, None, idempotency_key=f"{number % 50}"))
    assert [session.find_call(key) is None for key in ("49", "48", "0")] == [False, False, True]
    for _ in range(80):
        session.publish(ToolInvoked("tool", {}, None))
    assert [session.find_call(key) for key in ("49", "48", "0")] == [None, None, None]


def test_a_key_that_is_used_again_is_found_when_its_first_call_is_forgotten() -> None:
    session = Session(history=20)
    for number in range(1, 80):
        key = "k" if number in {1, 62} else None
        session.publish(ToolInvoked(f"tool {number}", {}, None, idempotency_key=key))
    assert getattr(session.find_call("k"), "name", None) == "tool 62"


def test_the_slices_before_one_change_in_thirty_two_are_kept() -> None:
    session = note_session()
    for number in range(100):
        session.dispatch(Note(str(number)))
    kept = [entry.version for entry in session._state.past._entries if entry.base is not None]
    assert kept == [1, 33, 65, 97]


def test_a_history_is_right_after_its_oldest_changes_went() -> None:
    session = note_session(history=40)
    assert (session.history(), session.at(0).version) == ((), 0)
    for n in range(150):
        session.publish(ToolInvoked("tool", {}, None, Note(str(n)), idempotency_key=f"{n % 50}"))
    assert [change.version for change in session.history(110)] == [*range(111, 151)]
    assert texts(session.at(115)) == [*map(str, range(115))]
    calls = session.at(115).select_all(ToolInvoked)
    assert [call.value for call in calls] == [Note(str(n)) for n in range(75, 115)]
    assert all(session.find_call(str(number)) for number in range(10, 50))


def find_names(session: Session, keys: str) -> list[str | None]:
    return [getattr(session.find_call(key), "name", None) for key in keys]


def test_a_rewind_frees_the_keys_behind_its_version_and_a_fork_has_those_before_its_own() -> None:
    session = Session()
    for number, key in enumerate("121", 1):
        session.publish(ToolInvoked(f"tool {number}", {}, None, idempotency_key=key))
    assert find_names(session, "123") == ["tool 3", "tool 2", None]
    assert find_names(session.fork(1), "123") == ["tool 1", None, None]
    session.rewind(0)
    assert find_names(session, "12") == find_names(session.fork(), "12") == [None, None]
    session.rewind(2)
    assert find_names(session, "12") == find_names(session.fork(), "12") == ["tool 1", "tool 2"]
    assert find_names(session.fork(4), "12") == [None, None]
    session.rewind(4)
    assert find_names(session, "12") == find_names(session.fork(), "12") == [None, None]


def test_a_commit_that_ctrl_c_cuts_short_is_in_no_history(monkeypatch: pytest.MonkeyPatch) -> None:
    session = note_session()
    session.publish(ToolInvoked("first", {}, None, idempotency_key="1"))

    def cut_short(self: Any, entry: KeptChange, before: Slices, _slices: Slices) -> None:
        self.past.record(entry, before, self.registered)
        raise KeyboardInterrupt

    cuts = {"state.State._record": cut_short, "history.Kept._index": Mock(side_effect=KeyboardInterrupt)}
    second = ToolInvoked("second", {}, None, idempotency_key="2")
    changes: list[Callable[[], object]] = [partial(session.rewind, 0), partial(session.publish, second)]
    for change, (place, cut) in product(changes, cuts.items()):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(f"session.{place}", cut)
            change()
        assert [each.version for each in session.history()] == [1]
        assert [each.version for each in session.fork().history()] == [1]
    session.dispatch(Note("after"))
    assert find_names(session, "12") == ["first", None]
    assert [each.events[0] for each in session.history(1)] == [Note("after")]
    assert session.at(1).select_all(Note) == ()


def test_a_bus_holds_no_session_and_drops_one_that_is_gone(bus: InProcessEventBus) -> None:
    collect_from_here()
    session = Session(bus=bus)
    event = ping(session)
    session.publish(event)
    gone = weakref.ref(session)
    del session
    gc.collect()
    assert gone() is None
    assert bus.publish(event).subscribers == ()


def test_an_unchanged_slice_is_the_same_object_at_each_reading() -> None:
    session = note_session()
    session.dispatch(Note("a"))
    session.register_reducer(Count, append)
    before = select_all(session, Note)
    session.dispatch(Count(1))
    assert select_all(session, Note) is before


Select = Callable[[type[Any]], tuple[Any, ...]]


def counts(select: Select) -> tuple[Count, ...]:
    """A view of notes and of calls."""
    names = [note.text for note in select(Note)] + [call.name for call in select(ToolInvoked)]
    return tuple(Count(len(name)) for name in names)


@pytest.fixture(params=[False, True], ids=["in memory", "in a store"])
def counting(request: pytest.FixtureRequest) -> Session:
    session = Session(store=MemoryStore() if request.param else None)
    session.register_reducer(Note, append)
    session.register_view(Count, counts)
    return session


def test_a_view_of_events_sees_those_of_an_open_transaction(counting: Session) -> None:
    with counting.transaction() as transaction:
        transaction.publish(called(counting, None, "abc"))
        assert select_all(counting, Count) == (Count(3),)
    assert select_all(counting, Count) == (Count(3),)


def test_a_slice_that_a_reducer_makes_goes_before_a_view(counting: Session) -> None:
    counting.register_reducer(Count, append)
    counting.dispatch(Note("ab"))
    assert select_all(counting, Count) == (Count(2),)
    counting.dispatch(Count(7))
    assert (select_all(counting, Count), select_latest(counting, Count)) == ((Count(7),), Count(7))


def test_a_view_is_in_no_snapshot_and_follows_a_rollback(counting: Session) -> None:
    counting.dispatch(Note("a"))
    before = counting.snapshot()
    counting.dispatch(Note("ab"))
    assert list(before.slices) == [Note]
    counting.rollback(before)
    assert select_all(counting, Count) == (Count(1),)
    past = counting.at(2)
    assert repr(past) == f"SessionView('{counting.session_id}', version=2)"
    assert (select_all(past, Count), select_latest(past, Count)) == ((Count(1), Count(2)), Count(2))


WRITES = """
import sys
sys.dont_write_bytecode, seen = True, []
changes = {"socket.connect", "subprocess.Popen", "os.mkdir", "os.rename", "os.remove", "os.system"}
sys.addaudithook(lambda event, args: seen.append(event) if event in changes or (
    event == "open" and args[2] & 3) else None)
from planning import PlanningToolsSection, Toolbox
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from session import Session, Snapshot

session = Session()
box = Toolbox(PlanningToolsSection(session=session).tools())
assert box.call("planning_setup_plan", {"objective": "Goal", "initial_steps": ["A"]}).success
assert not box.call("planning_mark_step", {"step_id": "S009", "status": "done"}).success
flow = Workflow(goal="Goal", steps=(WorkflowStep(step_id="a", description="Think"),))
run_workflow(flow, Capabilities(), session=session)
session.fork(at=1).rollback(Snapshot.from_json(session.snapshot().to_json()))
print(seen)
open("/dev/null", "w").close()
print(seen)
"""


def test_nothing_is_written_outside_of_the_process() -> None:
    assert printed(WRITES) == "[]\n['open']\n"
