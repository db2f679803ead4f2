"""The session: identity, family, reducers, its events on a shared bus, and its life."""

from __future__ import annotations

import gc
import threading
import weakref
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from session_records import Count, LoudPing, Note, Ping, called, elsewhere, note_session, numbers, ping

from session import (
    InProcessEventBus,
    ReducerError,
    Session,
    SessionError,
    SessionEvent,
    SnapshotError,
    ToolInvoked,
    TransactionError,
    append,
    keep_last,
    replace_latest,
)

IDENTITY = UUID("00000000-0000-4000-8000-000000000001")


class TestIdentity:
    def test_a_session_keeps_the_identity_it_was_given(self) -> None:
        when = datetime(2024, 5, 6, tzinfo=timezone(timedelta(hours=2)))
        session = Session(session_id=IDENTITY, created_at=when, tags={"run": "7"})
        assert (session.session_id, session.created_at, dict(session.tags)) == (IDENTITY, when, {"run": "7"})
        assert repr(session) == "Session('00000000-0000-4000-8000-000000000001', tags={'run': '7'})"

    def test_a_session_makes_an_identity_of_its_own(self) -> None:
        before = datetime.now(UTC)
        one, two = Session(), Session()
        assert one.session_id != two.session_id
        assert before <= one.created_at <= two.created_at <= datetime.now(UTC)
        assert one.created_at.utcoffset() == timedelta(0)
        assert dict(one.tags) == {}
        assert (one.parent, one.children) == (None, ())

    def test_a_date_without_a_time_zone_is_refused(self) -> None:
        with pytest.raises(ValueError) as caught:
            Session(created_at=datetime(2024, 5, 6))
        assert str(caught.value) == "created_at must carry a time zone: use datetime.now(UTC)"

    def test_tags_are_a_copy_that_nobody_can_change(self) -> None:
        given = {"run": "7"}
        session = Session(tags=given)
        given["run"] = "8"
        tags: Any = session.tags
        with pytest.raises(TypeError) as caught:
            tags["run"] = "9"
        assert str(caught.value) == "'mappingproxy' object does not support item assignment"
        assert dict(session.tags) == {"run": "7"}

    @pytest.mark.parametrize("tags", [{"run": 7}, {7: "run"}, {"run": None}, {"a": "b", "c": b"d"}])
    def test_tags_that_are_no_text_are_refused(self, tags: Any) -> None:
        with pytest.raises(TypeError) as caught:
            Session(tags=tags)
        assert str(caught.value) == f"tags must be text, got {tags!r}"


class TestFamily:
    def test_a_parent_lists_its_children_in_the_order_of_their_opening(self) -> None:
        parent = Session()
        children = tuple(Session(parent=parent) for _ in range(3))
        assert parent.children == children
        assert [child.parent for child in children] == [parent] * 3
        assert [child.children for child in children] == [()] * 3

    def test_parent_and_child_share_neither_slices_nor_events(self, bus: InProcessEventBus) -> None:
        parent = Session(bus=bus)
        child = Session(bus=bus, parent=parent)
        for session in (parent, child):
            session.register_reducer(Note, append)
        child.dispatch(Note("child"))
        child.publish(ping(child, 1))
        assert (parent.select_all(Note), parent.select_all(Ping)) == ((), ())
        assert child.select_all(Note) == (Note("child"),)
        assert numbers(child.select_all(Ping)) == [1]

    def test_a_parent_keeps_its_children_also_when_they_are_closed(self) -> None:
        parent = Session()
        identity = Session(parent=parent).session_id
        gc.collect()
        (child,) = parent.children
        child.close()
        assert child.session_id == identity
        assert parent.children == (child,)

    def test_a_child_whose_bus_refuses_it_is_not_listed(self) -> None:
        class RefusingBus(InProcessEventBus):
            def subscribe(self, event_type: type[Any], handler: Any) -> None:
                raise OSError("no")

        parent = Session()
        with pytest.raises(OSError) as caught:
            Session(bus=RefusingBus(), parent=parent)
        assert str(caught.value) == "no"
        assert parent.children == ()

    def test_children_opened_by_many_threads_are_all_listed(self) -> None:
        parent = Session()
        barrier = threading.Barrier(8)

        def work() -> None:
            barrier.wait()
            for _ in range(20):
                Session(parent=parent)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(parent.children)) == 160


class TestReducers:
    def test_a_reducer_answers_its_type_exactly_and_no_subclass(self, session: Session) -> None:
        session.register_reducer(Ping, lambda slice_, event: (*slice_, event.number), slice_type=int)
        session.publish(ping(session, 1))
        session.publish(LoudPing(2, session_id=session.session_id))
        assert session.select_all(int) == (1,)
        assert numbers(session.select_all(LoudPing)) == [2]

    def test_reducers_of_one_type_run_in_the_order_of_registration(self, session: Session) -> None:
        session.register_reducer(Note, lambda slice_, event: (*slice_, f"1 {event.text}"), slice_type=str)
        session.register_reducer(Note, lambda slice_, event: (*slice_, f"2 {event.text}"), slice_type=str)
        session.dispatch(Note("a"))
        assert session.select_all(str) == ("1 a", "2 a")

    def test_registering_the_same_again_changes_nothing(self, session: Session) -> None:
        session.register_reducer(Note, append)
        session.register_reducer(Note, append, slice_type=Note)
        session.dispatch(Note("a"))
        assert session.select_all(Note) == (Note("a"),)

    def test_a_reducer_that_comes_late_answers_from_then_on(self, session: Session) -> None:
        session.dispatch(Note("early"))
        session.register_reducer(Note, append)
        session.dispatch(Note("late"))
        assert session.select_all(Note) == (Note("late"),)

    def test_one_value_may_feed_many_slices(self, session: Session) -> None:
        session.register_reducer(Note, append)
        session.register_reducer(Note, replace_latest, slice_type=object)
        session.dispatch(Note("a"))
        session.dispatch(Note("b"))
        assert session.select_all(Note) == (Note("a"), Note("b"))
        assert session.select_all(object) == (Note("b"),)

    def test_reducers_of_both_kinds_may_share_a_slice(self, session: Session) -> None:
        session.register_reducer(Note, append)
        session.register_reducer(Count, lambda slice_, event: slice_[: event.total], slice_type=Note)
        for value in (Note("a"), Note("b"), Count(1), Note("c")):
            session.dispatch(value)
        assert session.select_all(Note) == (Note("a"), Note("c"))

    def test_a_reducer_that_fails_in_dispatch_changes_nothing(self, session: Session) -> None:
        session.register_reducer(Note, append)
        session.register_reducer(Note, lambda slice_, event: (1 // 0,), slice_type=int)
        with pytest.raises(ZeroDivisionError):
            session.dispatch(Note("a"))
        assert (session.select_all(Note), session.select_all(int)) == ((), ())

    @pytest.mark.parametrize("wrong", [("Note", append, None), (Note, append, "Note")])
    def test_a_type_that_is_no_class_is_refused(self, session: Session, wrong: tuple[Any, Any, Any]) -> None:
        with pytest.raises(TypeError) as caught:
            session.register_reducer(*wrong)
        assert str(caught.value) == "event_type and slice_type must be classes, got 'Note'"

    def test_a_reducer_that_cannot_be_called_is_refused(self, session: Session) -> None:
        wrong: Any = "append"
        with pytest.raises(TypeError) as caught:
            session.register_reducer(Note, wrong)
        assert str(caught.value) == "a reducer must be callable, got 'append'"

    def test_a_coroutine_function_is_refused_as_a_reducer(self, session: Session) -> None:
        async def later(slice_: tuple[Any, ...], event: Any) -> tuple[Any, ...]:
            return slice_

        wrong: Any = later
        with pytest.raises(TypeError) as caught:
            session.register_reducer(Note, wrong)
        assert str(caught.value) == "a reducer must be a plain function: nobody would await it"


class TestEvents:
    def test_an_event_is_kept_in_a_slice_of_its_type(self, session: Session) -> None:
        events = (ping(session, 1), ping(session, 2))
        for event in events:
            assert session.publish(event).ok
        assert session.select_all(Ping) == events

    def test_a_tool_call_is_reduced_as_event_and_as_value(self, session: Session) -> None:
        session.register_reducer(Note, append)
        event = called(session, Note("a"))
        assert session.publish(event).ok
        assert session.select_all(ToolInvoked) == (event,)
        assert session.select_all(Note) == (Note("a"),)

    def test_a_tool_call_without_a_value_is_only_logged(self, session: Session) -> None:
        session.register_reducer(type(None), append)
        session.publish(called(session, None))
        assert len(session.select_all(ToolInvoked)) == 1
        assert session.select_all(type(None)) == ()

    def test_event_and_value_are_reduced_both_or_not_at_all(self, session: Session) -> None:
        session.register_reducer(Note, lambda slice_, event: None)  # type: ignore[arg-type]
        session.register_reducer(ToolInvoked, append)
        session.register_reducer(ToolInvoked, lambda slice_, event: (event.name,), slice_type=str)
        result = session.bus.publish(called(session, Note("a")))
        assert [type(failure.error) for failure in result.failures] == [ReducerError]
        assert (session.select_all(ToolInvoked), session.select_all(Note)) == ((), ())
        assert session.select_all(str) == ()

    def test_the_value_is_reduced_before_the_event_whoever_publishes(self, session: Session) -> None:
        def note(slice_: tuple[str, ...], event: Note) -> tuple[str, ...]:
            return (*slice_, event.text)

        def call(slice_: tuple[str, ...], event: ToolInvoked) -> tuple[str, ...]:
            return (*slice_, event.name)

        session.register_reducer(Note, note, slice_type=str)
        session.register_reducer(ToolInvoked, call, slice_type=str)
        session.publish(called(session, Note("value 1"), "event 1"))
        session.bus.publish(called(session, Note("value 2"), "event 2"))
        with session.transaction() as transaction:
            transaction.publish(called(session, Note("value 3"), "event 3"))
        assert session.select_all(str) == ("value 1", "event 1", "value 2", "event 2", "value 3", "event 3")
        assert len(session.select_all(ToolInvoked)) == 3

    def test_what_a_reducer_raises_on_publish_is_raised_and_nobody_is_told(self, session: Session) -> None:
        session.register_reducer(Note, lambda slice_, event: None)  # type: ignore[arg-type]
        heard: list[object] = []
        session.bus.subscribe(object, heard.append)
        with pytest.raises(ReducerError) as caught:
            session.publish(called(session, Note("a")))
        assert str(caught.value).endswith("<lambda> returned NoneType; it must return a tuple")
        assert (session.select_all(ToolInvoked), session.select_all(Note)) == ((), ())
        assert heard == []

    def test_what_a_reducer_raises_on_the_bus_is_a_failure_of_that_subscriber(self, session: Session) -> None:
        session.register_reducer(Ping, lambda slice_, event: (1 // 0,), slice_type=int)
        result = session.bus.publish(ping(session))
        assert [type(failure.error) for failure in result.failures] == [ZeroDivisionError]
        assert session.select_all(Ping) == ()

    def test_a_published_event_is_there_when_the_first_subscriber_hears_it(
        self, bus: InProcessEventBus
    ) -> None:
        sessions: list[Session] = []
        seen: list[list[int]] = []
        bus.subscribe(Ping, lambda event: seen.append(numbers(sessions[0].select_all(Ping))))
        sessions.append(Session(bus=bus))
        sessions[0].publish(ping(sessions[0], 1))
        assert seen == [[1]]

    def test_an_event_of_another_session_goes_to_the_bus_alone(self, session: Session) -> None:
        other = Session()
        heard: list[object] = []
        session.bus.subscribe(Ping, heard.append)
        event = ping(other, 1)
        result = session.publish(event)
        assert (result.event, result.ok, len(result.handlers)) == (event, True, 2)
        assert heard == [event]
        assert (session.select_all(Ping), other.select_all(Ping)) == ((), ())

    def test_an_event_of_another_session_is_refused_by_dispatch(self, session: Session) -> None:
        other = Session()
        with pytest.raises(TransactionError) as caught:
            session.dispatch(ping(other))
        assert str(caught.value) == f"the event belongs to another session, {other.session_id}"
        assert session.select_all(Ping) == ()

    def test_an_event_is_addressed_by_the_value_of_its_session_id(self, session: Session) -> None:
        session.publish(Ping(1, session_id=UUID(str(session.session_id))))
        session.dispatch(Ping(2, session_id=UUID(str(session.session_id))))
        session.bus.publish(Ping(3, session_id=UUID(str(session.session_id))))
        assert numbers(session.select_all(Ping)) == [1, 2, 3]

    def test_two_sessions_on_one_bus_never_see_each_others_events(self, bus: InProcessEventBus) -> None:
        one, two = Session(bus=bus), Session(bus=bus)
        for session in (one, two):
            session.register_reducer(Note, append)
        one.publish(called(one, Note("for one")))
        one.publish(called(two, Note("for two")))
        with two.transaction() as transaction:
            transaction.publish(ping(two, 1))
        bus.publish(ping(one, 2))
        assert (one.select_all(Note), two.select_all(Note)) == ((Note("for one"),), (Note("for two"),))
        assert (numbers(one.select_all(Ping)), numbers(two.select_all(Ping))) == ([2], [1])
        assert [len(session.select_all(ToolInvoked)) for session in (one, two)] == [1, 1]

    def test_a_published_event_is_told_once_and_reduced_once(self, session: Session) -> None:
        heard: list[Ping] = []
        session.bus.subscribe(Ping, heard.append)
        session.publish(ping(session, 1))
        with session.transaction() as transaction:
            transaction.publish(ping(session, 2))
        assert numbers(tuple(heard)) == numbers(session.select_all(Ping)) == [1, 2]

    def test_history_bounds_the_log_of_each_event_type(self, bus: InProcessEventBus) -> None:
        session = Session(bus=bus, history=3)
        session.register_reducer(Note, append)
        for number in range(10):
            session.publish(ping(session, number))
            session.dispatch(Note(str(number)))
        session.publish(LoudPing(99, session_id=session.session_id))
        assert numbers(session.select_all(Ping)) == [7, 8, 9]
        assert numbers(session.select_all(LoudPing)) == [99]
        assert len(session.select_all(Note)) == 10

    @pytest.mark.parametrize("history", [1, 3])
    def test_history_bounds_a_long_log_at_every_moment(self, history: int) -> None:
        session = Session(history=history)
        for number in range(120):
            with session.transaction() as transaction:
                transaction.publish(ping(session, number))
                expected = list(range(max(0, number + 1 - history), number + 1))
                assert numbers(session.select_all(Ping)) == expected
                assert session.select_latest(Ping) == session.select_all(Ping)[-1]
            assert numbers(session.select_all(Ping)) == expected
            assert session.select_latest(Ping) == session.select_all(Ping)[-1]

    def test_a_bounded_log_lets_go_of_what_it_dropped(self) -> None:
        class Thing: ...

        session = Session(history=2)
        things = []
        for _ in range(200):
            thing = Thing()
            things.append(weakref.ref(thing))
            session.publish(ToolInvoked("tool", thing, None, session_id=session.session_id))
            del thing
        gc.collect()
        assert sum(ref() is not None for ref in things) <= 2 * 2 + 34

    def test_a_log_that_was_read_never_changes(self, session: Session) -> None:
        session.publish(ping(session, 1))
        before = session.select_all(Ping)
        session.publish(ping(session, 2))
        assert numbers(before) == [1]

    def test_a_reducer_for_the_slice_of_its_own_event_takes_the_place_of_the_log(
        self, session: Session
    ) -> None:
        session.publish(ping(session, 1))
        session.publish(ping(session, 2))
        session.register_reducer(Ping, keep_last(2))
        session.publish(ping(session, 3))
        assert numbers(session.select_all(Ping)) == [2, 3]

    def test_a_reducer_for_another_slice_leaves_the_log_alone(self, session: Session) -> None:
        session.register_reducer(Ping, lambda slice_, event: (Count(event.number),), slice_type=Count)
        session.publish(ping(session, 1))
        session.publish(ping(session, 2))
        assert session.select_all(Count) == (Count(2),)
        assert numbers(session.select_all(Ping)) == [1, 2]

    @pytest.mark.parametrize("history", [0, -3, 2.5, "3"])
    def test_a_history_that_is_no_whole_number_of_at_least_one_is_refused(self, history: Any) -> None:
        with pytest.raises(ValueError) as caught:
            Session(history=history)
        assert str(caught.value) == f"history must be a whole number of at least 1, got {history!r}"


class TestRollback:
    def test_rollback_restores_the_slices_and_keeps_the_event_logs(self, session: Session) -> None:
        session.register_reducer(Note, append)
        session.register_reducer(Count, replace_latest)
        session.publish(called(session, Note("a")))
        session.dispatch(Count(1))
        snapshot = session.snapshot()
        session.publish(called(session, Note("b")))
        session.dispatch(Count(2))
        session.rollback(snapshot)
        assert session.select_all(Note) == (Note("a"),)
        assert session.select_all(Count) == (Count(1),)
        assert len(session.select_all(ToolInvoked)) == 2

    def test_a_slice_that_is_younger_than_the_snapshot_goes(self) -> None:
        session = note_session()
        snapshot = session.snapshot()
        session.dispatch(Note("a"))
        session.rollback(snapshot)
        assert session.select_all(Note) == ()
        assert session.snapshot() == snapshot

    def test_rollback_inside_a_transaction_that_is_given_up_never_was(self) -> None:
        session = note_session()
        empty = session.snapshot()
        session.dispatch(Note("a"))
        with pytest.raises(KeyError), session.transaction():
            session.rollback(empty)
            assert session.select_all(Note) == ()
            raise KeyError
        assert session.select_all(Note) == (Note("a"),)

    def test_the_snapshot_of_another_session_can_be_put_in_place(self) -> None:
        one, two = note_session(), note_session()
        one.dispatch(Note("one"))
        two.rollback(one.snapshot())
        two.dispatch(Note("two"))
        one.dispatch(Note("one again"))
        assert two.select_all(Note) == (Note("one"), Note("two"))
        assert one.select_all(Note) == (Note("one"), Note("one again"))

    def test_a_history_goes_on_where_it_was_when_a_rollback_is_given_up(self) -> None:
        session = Session(history=2)
        empty = session.snapshot()
        session.publish(ping(session, 1))
        with pytest.raises(KeyError), session.transaction() as transaction:
            session.rollback(empty)
            transaction.publish(ping(session, 2))
            raise KeyError
        session.publish(ping(session, 3))
        assert numbers(session.select_all(Ping)) == [1, 3]

    def test_only_a_snapshot_can_be_rolled_back_to(self, session: Session) -> None:
        wrong: Any = {}
        with pytest.raises(SnapshotError) as caught:
            session.rollback(wrong)
        assert str(caught.value) == "rollback takes a Snapshot, got dict"


class TestClone:
    def test_a_clone_starts_equal_and_goes_its_own_way(self) -> None:
        session = note_session()
        session.dispatch(Note("a"))
        clone = session.clone()
        assert clone.snapshot() == session.snapshot()
        clone.dispatch(Note("clone"))
        session.dispatch(Note("b"))
        assert session.select_all(Note) == (Note("a"), Note("b"))
        assert clone.select_all(Note) == (Note("a"), Note("clone"))

    def test_a_clone_takes_what_is_committed(self) -> None:
        session = note_session()
        session.dispatch(Note("before"))
        with session.transaction() as transaction:
            transaction.dispatch(Note("inside"))
            clone = session.clone()
        assert clone.select_all(Note) == (Note("before"),)
        assert session.select_all(Note) == (Note("before"), Note("inside"))

    def test_a_clone_shares_the_bus_and_the_tags_and_has_an_identity_of_its_own(self) -> None:
        session = Session(tags={"run": "7"}, parent=Session())
        clone = session.clone()
        assert clone.bus is session.bus
        assert dict(clone.tags) == {"run": "7"}
        assert clone.session_id != session.session_id
        assert (clone.parent, session.children) == (None, ())

    def test_a_clone_takes_what_it_is_given(self, bus: InProcessEventBus) -> None:
        session = Session(tags={"run": "7"})
        clone = session.clone(bus=bus, parent=session, session_id=IDENTITY, tags={})
        assert clone.bus is bus
        assert (clone.parent, session.children) == (session, (clone,))
        assert (clone.session_id, dict(clone.tags)) == (IDENTITY, {})

    def test_a_clone_cannot_have_the_identity_of_its_original(self) -> None:
        session = Session(session_id=IDENTITY)
        with pytest.raises(SessionError) as caught:
            session.clone(session_id=IDENTITY)
        assert str(caught.value) == "a clone needs an identity of its own: leave session_id out"

    def test_a_clone_hears_its_own_events_and_keeps_the_bound_of_its_history(self) -> None:
        session = Session(history=2)
        clone = session.clone()
        for number in range(4):
            clone.publish(ping(clone, number))
        assert numbers(clone.select_all(Ping)) == [2, 3]
        assert session.select_all(Ping) == ()

    def test_reducers_that_one_learns_later_the_other_does_not_know(self, session: Session) -> None:
        clone = session.clone()
        session.register_reducer(Note, append)
        for each in (session, clone):
            each.dispatch(Note("a"))
        assert session.select_all(Note) == (Note("a"),)
        assert clone.select_all(Note) == ()


class TestLife:
    def test_a_closed_session_hears_nothing_and_can_be_read(self, bus: InProcessEventBus) -> None:
        session = Session(bus=bus)
        session.publish(ping(session, 1))
        session.close()
        session.close()
        assert bus.publish(ping(session, 2)).handlers == ()
        assert numbers(session.select_all(Ping)) == [1]

    def test_a_closed_session_can_be_changed_and_tells_the_bus(self, bus: InProcessEventBus) -> None:
        session = Session(bus=bus)
        heard: list[Ping] = []
        bus.subscribe(Ping, heard.append)
        session.close()
        assert session.publish(ping(session, 1)).ok
        assert numbers(session.select_all(Ping)) == numbers(tuple(heard)) == [1]

    def test_a_bus_holds_no_session_and_drops_one_that_is_gone_at_the_next_event(
        self, bus: InProcessEventBus
    ) -> None:
        session = Session(bus=bus)
        session.publish(ping(session))
        gone = weakref.ref(session)
        del session
        gc.collect()
        assert gone() is None
        results = [bus.publish(Ping(session_id=IDENTITY)) for _ in range(2)]
        assert [(result.ok, len(result.handlers)) for result in results] == [(True, 1), (True, 0)]

    def test_a_family_that_nobody_holds_is_collected(self, bus: InProcessEventBus) -> None:
        parent = Session(bus=bus)
        gone = [weakref.ref(parent), weakref.ref(Session(bus=bus, parent=parent))]
        del parent
        gc.collect()
        assert [ref() for ref in gone] == [None, None]
        results = [bus.publish(Ping(session_id=IDENTITY)) for _ in range(2)]
        assert [(result.ok, len(result.handlers)) for result in results] == [(True, 2), (True, 0)]

    def test_a_session_that_is_collected_while_the_bus_is_at_work_harms_nothing(
        self, bus: InProcessEventBus
    ) -> None:
        class Collecting:
            """Comparing subscribers collects garbage, as any allocation may."""

            def __call__(self, event: SessionEvent) -> None: ...

            def __eq__(self, other: object) -> bool:
                gc.collect()
                return self is other

            __hash__ = object.__hash__

        def work() -> tuple[Any, ...]:
            one, two = Collecting(), Collecting()
            bus.subscribe(SessionEvent, one)
            Session(bus=bus, parent=Session(bus=bus))  # a cycle: only the collector ends it
            bus.subscribe(SessionEvent, two)
            bus.unsubscribe(SessionEvent, two)
            bus.publish(Ping(session_id=IDENTITY))
            assert bus.publish(Ping(session_id=IDENTITY)).handlers == (one,)
            return ("done",)

        gc.disable()
        try:
            assert elsewhere(work) == [("done",)]
        finally:
            gc.enable()

    def test_a_session_that_is_collected_while_the_bus_looks_for_subscribers_harms_nothing(
        self, bus: InProcessEventBus
    ) -> None:
        class Collecting(type):
            """Asking for subclasses collects garbage, as any allocation may."""

            def __subclasscheck__(cls, subclass: type) -> bool:
                gc.collect()
                return False

        class Never(metaclass=Collecting): ...

        def work() -> int:
            Session(bus=bus, parent=Session(bus=bus))
            bus.subscribe(Never, print)
            bus.publish(Ping(session_id=IDENTITY))
            return len(bus.publish(Ping(session_id=IDENTITY)).handlers)

        gc.disable()
        try:
            assert elsewhere(work) == [0]
        finally:
            gc.enable()

    def test_sessions_come_and_go_under_an_eager_collector(self, bus: InProcessEventBus) -> None:
        def work() -> str:
            for _ in range(1000):
                Session(bus=bus, parent=Session(bus=bus))
                bus.publish(Ping(session_id=IDENTITY))
            return "done"

        before = gc.get_threshold()
        gc.set_threshold(3)
        try:
            assert elsewhere(work) == ["done"]
        finally:
            gc.set_threshold(*before)
        gc.collect()
        bus.publish(Ping(session_id=IDENTITY))
        assert bus.publish(Ping(session_id=IDENTITY)).handlers == ()

    def test_a_bus_that_delivers_late_does_not_wake_a_session_that_is_gone(self) -> None:
        class LateBus(InProcessEventBus):
            """Keeps every subscriber for good."""

            def unsubscribe(self, event_type: type[Any], handler: Any) -> bool:
                return False

        bus = LateBus()
        session = Session(bus=bus)
        gone = weakref.ref(session)
        del session
        gc.collect()
        assert gone() is None
        assert bus.publish(Ping(session_id=IDENTITY)).ok
