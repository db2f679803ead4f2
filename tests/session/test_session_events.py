"""A session and its events on a shared bus."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from session_records import Note, Ping, called, numbers, ping

from session import (
    InProcessEventBus,
    PromptExecuted,
    ReducerError,
    Session,
    ToolFailed,
    ToolInvoked,
    append,
    keep_last,
)


class TestEvents:
    def test_what_a_reducer_raises_is_raised_on_publish_and_a_failure_on_the_bus_and_nothing_is_reduced(
        self, session: Session
    ) -> None:
        session.register_reducer(Note, lambda slice_, event: None)  # type: ignore[arg-type]
        session.register_reducer(ToolInvoked, append)
        session.register_reducer(ToolInvoked, lambda slice_, event: (event.name,), slice_type=str)
        result = session.bus.publish(called(session, Note("a")))
        assert [type(failure.error) for failure in result.failures] == [ReducerError]
        heard: list[object] = []
        session.bus.subscribe(object, heard.append)
        with pytest.raises(ReducerError) as caught:
            session.publish(called(session, Note("a")))
        assert str(caught.value).endswith("<lambda> returned NoneType; it must return a tuple")
        assert (heard, session.version) == ([], 0)
        assert [session.select_all(kind) for kind in (ToolInvoked, Note, str)] == [()] * 3

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
        session.dispatch(called(session, Note("value 4"), "event 4"))
        expected = [f"{what} {number}" for number in range(1, 5) for what in ("value", "event")]
        assert list(session.select_all(str)) == list(session.at(4).select_all(str)) == expected
        assert len(session.select_all(ToolInvoked)) == 4

    def test_another_session_object_of_the_same_id_on_the_bus_reduces_what_one_publishes(self) -> None:
        one = Session(session_id="run-7")
        other = Session(session_id="run-7", bus=one.bus)
        for session in (one, other):
            session.register_reducer(Note, append)
        one.publish(called(one, Note("a")))
        other.publish(called(other, Note("b")))
        assert one.select_all(Note) == other.select_all(Note) == (Note("a"), Note("b"))
        assert one.version == other.version == 2
        other.close()
        one.publish(called(one, Note("c")))
        assert (one.version, other.version) == (3, 2)

    def test_a_published_event_is_there_when_the_first_subscriber_hears_it(
        self, bus: InProcessEventBus
    ) -> None:
        sessions: list[Session] = []
        seen: list[list[int]] = []
        bus.subscribe(Ping, lambda event: seen.append(numbers(sessions[0].select_all(Ping))))
        sessions.append(Session(bus=bus))
        sessions[0].publish(ping(sessions[0], 1))
        assert seen == [[1]]

    @pytest.mark.parametrize("history", [None, 20_000])
    def test_an_event_costs_the_same_however_long_the_log_is(self, history: int | None) -> None:
        session = Session(history=history)
        events = [ping(session, number) for number in range(30_000)]
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
        # A copy of the log would take 160,000 bytes at least; its buffer grows now and then.
        assert sum(peak > 20_000 for peak in peaks) <= 1

    def test_a_reducer_that_comes_after_the_log_keeps_its_events_and_all_other_slices(
        self, session: Session
    ) -> None:
        session.register_reducer(Note, append)
        session.publish(called(session, Note("a")))
        for number in range(3):
            session.publish(ping(session, number))
        session.register_reducer(Ping, keep_last(2))
        assert (session.select_all(Note), len(session.select_all(ToolInvoked))) == ((Note("a"),), 1)
        assert numbers(session.select_all(Ping)) == [0, 1, 2]
        session.publish(ping(session, 3))
        assert numbers(session.select_all(Ping)) == [2, 3]

    def test_what_an_event_carries_does_not_change_with_its_makers_containers(self, session: Session) -> None:
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

    @pytest.mark.parametrize("history", [0, -3, 2.5, "3"])
    def test_a_history_that_is_no_whole_number_of_at_least_one_is_refused(self, history: Any) -> None:
        with pytest.raises(ValueError) as caught:
            Session(history=history)
        assert str(caught.value) == f"history must be a whole number of at least 1, got {history!r}"
