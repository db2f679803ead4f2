"""Rollback, clones, and the end of a session."""

from __future__ import annotations

import gc
import weakref
from typing import Any
from uuid import UUID

import pytest
from session_records import Count, Note, Ping, called, ping

from session import InProcessEventBus, Session, SnapshotError, ToolInvoked, append, keep_last

IDENTITY = UUID("00000000-0000-4000-8000-000000000001")


class TestRollback:
    def test_only_a_snapshot_can_be_rolled_back_to(self, session: Session) -> None:
        wrong: Any = {}
        with pytest.raises(SnapshotError) as caught:
            session.rollback(wrong)
        assert str(caught.value) == "rollback takes a Snapshot, got dict"


class TestReset:
    def test_reset_empties_the_slices_and_keeps_reducers_views_and_event_logs(self, session: Session) -> None:
        session.register_reducer(Note, append)
        session.register_reducer(Ping, keep_last(1))
        session.register_view(Count, lambda select: (Count(len(select(Note))),))
        session.publish(called(session, Note("a")))
        session.publish(ping(session, 1))
        before = session.snapshot()
        session.reset()
        assert (session.select_all(Note), session.select_all(Count)) == ((), (Count(0),))
        assert (len(session.select_all(ToolInvoked)), len(session.select_all(Ping))) == (1, 1)
        assert session.snapshot() == Session().snapshot()
        session.dispatch(Note("b"))
        assert session.select_all(Note) == (Note("b"),)
        session.rollback(before)
        assert session.select_all(Note) == (Note("a"),)


class TestClone:
    def test_a_clone_shares_the_bus_and_the_tags_and_has_an_identity_of_its_own(self) -> None:
        session = Session(tags={"run": "7"}, parent=Session())
        clone = session.clone()
        assert clone.bus is session.bus
        assert dict(clone.tags) == {"run": "7"}
        assert clone.session_id != session.session_id
        assert (clone.parent, session.children) == (None, ())


class TestLife:
    def test_a_bus_holds_no_session_and_drops_one_that_is_gone(self, bus: InProcessEventBus) -> None:
        session = Session(bus=bus)
        event = ping(session)
        session.publish(event)
        gone = weakref.ref(session)
        del session
        gc.collect()
        assert gone() is None
        assert bus.publish(event).subscribers == ()
