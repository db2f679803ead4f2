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

from session import Reducer


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


def work_of(job: Callable[[], object]) -> int:
    """How many calls a piece of work makes: the same on any machine."""
    events = count(0)
    sys.setprofile(lambda *_: next(events))
    try:
        job()
    finally:
        sys.setprofile(None)
    return next(events)
