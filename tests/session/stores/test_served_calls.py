"""Processes of a server: calls of many users, event loops, cancelled calls, kills; forks at any moment."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import count, pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import forking
import pytest
import served_calls
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres_server import place_of
from served_calls import Script, opened, title, titles

from planning import PlanningToolsSection, Toolbox
from session import Session

EXAMPLES = max(5, settings().max_examples // 10)
PATIENCE = 120.0  # seconds after which a worker is stuck
SPAWN = multiprocessing.get_context("spawn")

Answer = dict[str, Any]


class Process:
    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._scripts, there = SPAWN.Pipe()
        self._process = SPAWN.Process(target=served_calls.main, args=(there,), daemon=True)
        self._process.start()
        there.close()

    def answers(self, script: Script, kill_after: int | None) -> list[Answer]:
        """What it answers until the script is done, or until it is killed after so many answers."""
        answers, is_killed = list[Answer](), False
        self._scripts.send(script)
        while True:
            if kill_after == len(answers):
                self._process.kill()
                is_killed = True
            assert self._scripts.poll(PATIENCE)
            try:
                answer = self._scripts.recv()
            except (EOFError, ConnectionResetError):  # it is dead
                self._process.join()
                assert self._process.exitcode == -signal.SIGKILL
                self._begin()
                return answers
            if answer is not None:
                answers.append(answer)
            elif not is_killed:
                return answers

    def close(self) -> None:
        self._process.kill()
        self._process.join()


@pytest.fixture(scope="module")
def processes() -> Iterator[list[Process]]:
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Process())) for _ in range(3)]


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return place_of(request.param, tmp_path_factory.mktemp("place"))


def set_up(place: list[str], users: set[str]) -> None:
    with closing(opened(place, 5)) as store:
        for user in users:
            session = Session(session_id=user, store=store)
            toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
            assert toolbox.call("planning_setup_plan", {"objective": "Serve"}).success


def run_all(processes: list[Process], scripts: list[Script], kills: list[int | None]) -> list[list[Answer]]:
    with ThreadPoolExecutor(len(processes)) as threads:
        return list(threads.map(Process.answers, processes, scripts, kills))


def check(place: list[str], scripts: list[Script], answered: list[list[Answer]]) -> None:
    users = {call["number"]: call["user"] for script in scripts for each in script["loops"] for call in each}
    answers = {answer["number"]: answer for each in answered for answer in each}
    made = defaultdict[str, list[Answer]](list)
    with closing(opened(place, 5)) as store:
        for user in set(users.values()):
            store.verify(user)
            there = titles(Session(session_id=user, store=store))
            assert len(there) == len(set(there)), "a call was made twice"
            for number in (number for number, other in users.items() if other == user):
                answer, is_there = answers.get(number, {"how": "left"}), title(number) in there
                match answer["how"]:
                    case "made":
                        assert is_there, f"{answer} is lost"
                        position = there.index(title(number))
                        assert answer["message"] == f"Added S{position + 1:03}."
                        made[user].append({**answer, "position": position})
                    case "refused":
                        assert not is_there, f"{answer} was made"
                    case "cancelled":
                        assert is_there is answer["there"], f"{answer} was made later, or is lost"
                    case how:
                        assert how == "left", answer
    loops = [{call["number"] for call in calls} for script in scripts for calls in script["loops"]]
    for each in made.values():
        for first, then in pairwise(sorted(each, key=lambda answer: answer["position"])):
            assert then["ended"] > first["begun"], "the order is not that of the answers"
        for loop in loops:
            in_order = sorted((a for a in each if a["number"] in loop), key=lambda answer: answer["order"])
            assert in_order == sorted(in_order, key=lambda answer: answer["position"])


FATES = st.sampled_from([None, None, None, "cancel", "timeout"])
CALLS = st.fixed_dictionaries(
    {"user": st.sampled_from("abc"), "at": st.integers(0, 30), "fate": FATES, "after": st.integers(0, 20)}
)
SCRIPTS = st.fixed_dictionaries(
    {
        "loops": st.lists(st.lists(CALLS, max_size=12), min_size=1, max_size=2),
        "at_once": st.sampled_from([2, 50]),
        "kept": st.booleans(),
        "patience": st.sampled_from([0.05, 5.0]),
        "held": st.lists(st.tuples(st.integers(0, 30), st.integers(1, 80)), max_size=2),
        "kill": st.none() | st.none() | st.integers(0, 8),
    }
)


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(drawn=st.lists(SCRIPTS, min_size=1, max_size=3))
def test_every_call_is_what_it_was_answered(
    processes: list[Process], place: list[str], drawn: list[dict[str, Any]]
) -> None:
    numbers, example = count(), uuid4()
    kills = [script.pop("kill") for script in drawn]
    scripts = [{**script, "place": place} for script in drawn]
    for script in scripts:
        script["loops"] = [
            [
                {**call, "number": next(numbers), "user": f"{call['user']}-{example}"}
                for call in sorted(calls, key=lambda call: call["at"])
            ]
            for calls in script["loops"]
        ]
    set_up(place, {f"{user}-{example}" for user in "abc"})
    check(place, scripts, run_all(processes, scripts, kills))


ROUNDS, WRITES = (os.environ["FORKS"], "50") if "FORKS" in os.environ else ("1", "8")  # `make soak` has many


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_what_parent_child_and_other_processes_write_is_in_the_store(kind: str, tmp_path: Path) -> None:
    file, place = str(tmp_path / "go"), place_of(kind, tmp_path)
    program = [sys.executable, "-W", "ignore", forking.__file__, ROUNDS, WRITES, file, *place]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
