"""The session: identity, family, reducers, what it refuses."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from session_records import LoudPing, Note, Ping, numbers, ping

from session import InProcessEventBus, Session, append


class TestIdentity:
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
    def test_a_parent_keeps_and_lists_its_children_in_order_until_they_are_closed(self) -> None:
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

    def test_a_child_whose_bus_refuses_it_is_not_listed(self) -> None:
        class RefusingBus(InProcessEventBus):
            def subscribe(
                self, event_type: Any, handler: Any, session_id: Any = None, when: Any = None
            ) -> None:
                raise OSError("no")

        parent = Session()
        with pytest.raises(OSError) as caught:
            Session(bus=RefusingBus(), parent=parent)
        assert str(caught.value) == "no"
        assert parent.children == ()


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


async def later(*_arguments: Any) -> tuple[Any, ...]:
    return ()


class Later:
    async def __call__(self, *_arguments: Any) -> tuple[Any, ...]:
        return ()


ROLES: dict[str, tuple[Callable[[Session, Any], object], str]] = {
    "reducer": (lambda session, given: session.register_reducer(Note, given), "it would never be awaited"),
    "view": (lambda session, given: session.register_view(Note, given), "it would never be awaited"),
    "subscriber": (lambda session, given: session.bus.subscribe(Note, given), "delivery is synchronous"),
}


@pytest.mark.parametrize("role", ROLES)
def test_what_a_session_cannot_call_is_refused(role: str, session: Session) -> None:
    register, reason = ROLES[role]
    refused = {
        "print": f"a {role} must be callable, got 'print'",
        **dict.fromkeys((later, Later(), partial(later)), f"a {role} must be a plain function: {reason}"),
    }
    for given, message in refused.items():
        with pytest.raises(TypeError) as caught:
            register(session, given)
        assert str(caught.value) == message
    assert session.publish(ping(session)).failures == ()


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (lambda session: session.register_reducer("Note", append),
         "event_type and slice_type must be classes, got 'Note'"),
        (lambda session: session.register_reducer(Note, append, "Note"),
         "event_type and slice_type must be classes, got 'Note'"),
        (lambda session: session.register_view("Note", print),
         "event_type and slice_type must be classes, got 'Note'"),
        (lambda session: session.bus.subscribe("Note", print), "event_type must be a class, got 'Note'"),
    ],
    ids=["event type", "slice type", "view", "subscriber"],
)  # fmt: skip
def test_a_type_that_is_no_class_is_refused(register: Callable[[Any], object], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        register(Session())
    assert str(caught.value) == message


def test_a_companion_is_one_object_for_a_session_and_its_class() -> None:
    session = Session()
    found = session.local_object(list)
    assert type(found) is list
    assert session.local_object(list) is found
    assert session.clone().local_object(list) is not found
