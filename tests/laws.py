"""The laws of reducers, stated once and checked against every reducer that is shipped.

A reducer is a pure function ``(slice, event) -> slice``. Whoever writes one adds it to a property
test that calls ``check_reducer_laws`` with slices and events of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import deepcopy
from itertools import count
from typing import Any
from uuid import uuid4

from session import Reducer, Session, Snapshot


def check_reducer_laws(reducer: Reducer, slice_: tuple[Any, ...], event: Any) -> None:
    """Check what holds for every reducer.

    The result is a tuple; what went in is as it was; the same input gives the same result; and
    only the values count, not which objects carry them.
    """
    slice_before, event_before = deepcopy(slice_), deepcopy(event)
    result: object = reducer(slice_, event)
    assert isinstance(result, tuple), f"{reducer!r} returned a {type(result).__name__}, not a tuple"
    assert slice_ == slice_before, f"{reducer!r} changed the slice that it was given"
    assert event == event_before, f"{reducer!r} changed the event that it was given"
    assert reducer(slice_, event) == result, f"{reducer!r} answers the same input in two ways"
    assert reducer(slice_before, event_before) == result, f"{reducer!r} tells equal inputs apart"


def check_shares_items(reducer: Reducer, slice_: tuple[Any, ...], event: Any) -> None:
    """Check that the result holds the event and objects of the old slice, and no copies of them."""
    old = {id(item) for item in (*slice_, event)}
    copies = [item for item in reducer(slice_, event) if id(item) not in old]
    assert copies == [], f"{reducer!r} made objects of its own"


def check_idempotent(reducer: Reducer, slice_: tuple[Any, ...], event: Any) -> None:
    """Check that the same event a second time changes nothing."""
    once = reducer(slice_, event)
    assert reducer(once, event) == once, f"{reducer!r} is not idempotent"


def check_session_agrees(
    reducer: Reducer, slice_type: type[Any], slice_: tuple[Any, ...], event: object
) -> None:
    """Check that a session with this reducer makes of a slice what the plain function makes of it."""
    session = Session()
    session.register_reducer(type(event), reducer, slice_type)
    session.rollback(Snapshot(slices={slice_type: slice_}, session_id=uuid4()))
    expected = reducer(slice_, event)
    session.dispatch(event)
    assert session.select_all(slice_type) == expected
    assert session.select_latest(slice_type) == (expected[-1] if expected else None)
    assert session.snapshot().select_all(slice_type) == expected


def work_of(job: Callable[[], object]) -> int:
    """How many calls a piece of work makes: the same on any machine."""
    events = count(0)
    sys.setprofile(lambda *_: next(events))
    try:
        job()
    finally:
        sys.setprofile(None)
    return next(events)
