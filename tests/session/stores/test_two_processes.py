"""What two processes do at once with one plan is one history, which a naive plan gives as well."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from itertools import chain, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres_server import place_of
from served_calls import opened

from naive_plan import Call, NaivePlan, plan_of, play_at_once, rows_of, start_at_once, toolbox_of, turns
from session import Session

EXAMPLES = settings().max_examples
Turns = list[list[Call]]


@pytest.fixture(scope="module")
def workers() -> Iterator[ProcessPoolExecutor]:
    """Two processes, which begin their calls at the same moment."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, spawn, start_at_once, (spawn.Barrier(2),)) as workers:
        yield workers


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_what_two_processes_do_at_once_is_one_history_that_answers_both(
    kind: str, tmp_path: Path, workers: ProcessPoolExecutor
) -> None:
    reached, place = Counter[str](), place_of(kind, tmp_path)

    @settings(max_examples=max(4, EXAMPLES // 4))
    @given(st.tuples(turns(), turns()))
    def check(histories: tuple[Turns, Turns]) -> None:
        calls: dict[str, Call] = {}
        answers: dict[str, tuple[bool, str]] = {}
        sent = []
        for hand, history in zip("ab", histories, strict=True):
            own = {f"{hand}{number}": call for number, call in enumerate(chain(*history))}
            calls |= own
            sent.append([(*call, {"call_id": call_id}) for call_id, call in own.items()])
        played = workers.map(play_at_once, [place] * 2, sent)
        for asked, made in zip(sent, played, strict=True):
            answers |= {context["call_id"]: answer for (*_, context), answer in zip(asked, made, strict=True)}
        with closing(opened(place, patience=30)) as store:
            session = Session(session_id="shop", store=store)
            toolbox_of(session)
            rows = rows_of(session)
            store.delete("shop")
        order = [row["call"][0] for row in rows]
        lost = calls.keys() - set(order)  # a read or a refusal waits for no writer
        assert [each for each in lost if answers[each][0] and calls[each][0] != "planning_read_plan"] == []
        assert [[each for each in order if each[0] == hand] for hand in "ab"] == [
            [each for each in calls if each[0] == hand and each not in lost] for hand in "ab"
        ]
        as_one, model, last = Session(), NaivePlan(), {"a": 0, "b": 0}
        box = toolbox_of(as_one)
        for call_id, row in zip(order, rows, strict=True):
            assert row["result"][::2] == answers[call_id]
            if row["result"][0]:
                assert model.call(*calls[call_id])
                assert box.call(*calls[call_id]).message == row["result"][2]
            else:  # it is recorded behind the changes of the other that came in between
                since = range(last[call_id[0]], as_one.version + 1)
                refused = [toolbox_of(as_one.fork(at)).call(*calls[call_id]).message for at in since]
                assert row["result"][2] in refused
                reached["refused later"] += row["result"][2] != refused[-1]
            assert row["plan"] == model.plan == plan_of(as_one)
            last[call_id[0]] = as_one.version
        reached["turns"] += sum(one[0] != other[0] for one, other in pairwise(order))

    check()
    assert reached["turns"] > 0
