"""One random history through every entry point: the same plans, the same replies, the same history."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from importlib import import_module
from itertools import count, groupby, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import pytest
from cli_runs import lines, run, said
from frameworks import TABLE, EntryPoint, play
from hypothesis import given, settings
from hypothesis import strategies as st

from naive_plan import SHOP, Call, NaivePlan, plan_of, play_in_process, reference, rows_of, toolbox_of, turns
from planning import NewPlanStep, ToolValidationError
from planning.suite.tools import planning_tools
from session import Session, Snapshot
from session.stores import SqliteStore

Turns = list[list[Call]]
Answers = list[tuple[bool, str]]
"""Whether each call was accepted, and the text that the model reads."""
EXAMPLES = settings().max_examples
COMMANDS: dict[str, Any] = {tool.name: tool.parameters for tool in planning_tools(Session())}


# Doors of one's own loop: each takes the turns and a folder


class Door:
    """Plays turns; ``session`` is the last that they were played in, ``differs`` what it has otherwise."""

    differs: ClassVar[dict[str, Any]] = {}

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ids = (f"call_{number}" for number in count(1))
        self.session = Session()

    def play(self, history: Turns) -> Answers:
        answers: Answers = []
        for turn in history:
            self.before_turn()
            answers += [self.call(*call, {"call_id": next(self.ids), "actor": "clerk"}) for call in turn]
        return answers

    def before_turn(self) -> None:
        """Do what must make no difference."""

    def call(self, name: str, arguments: Any, context: dict[str, str]) -> tuple[bool, str]:
        result = toolbox_of(self.session).call(name, arguments, context=context)
        return result.success, result.message


class Text(Door):
    def call(self, name: str, arguments: Any, context: dict[str, str]) -> tuple[bool, str]:
        return super().call(name, arguments if isinstance(arguments, str) else json.dumps(arguments), context)


class Async(Door):
    def call(self, name: str, arguments: Any, context: dict[str, str]) -> tuple[bool, str]:
        result = asyncio.run(toolbox_of(self.session).acall(name, arguments, context=context))
        return result.success, result.message


class Commands(Door):
    """Commands from Python, which are in the events as they were given; what is none takes the usual way."""

    differs: ClassVar = {"params": None}

    def call(self, name: str, arguments: Any, context: dict[str, str]) -> tuple[bool, str]:
        model = NaivePlan()
        model.plan = plan_of(self.session)
        try:
            given = dict(arguments)
            for steps in given.keys() & {"steps", "initial_steps"}:
                made = [
                    NewPlanStep(each) if isinstance(each, str) else NewPlanStep(**each)
                    for each in given[steps]
                ]
                given[steps] = tuple(made)
            command = COMMANDS[name](**given)
        except (TypeError, ValueError):  # it is no command
            return super().call(name, arguments, context)
        if model.call(name, arguments):
            result = toolbox_of(self.session).invoke(name, command, context=context)
            return result.success, result.message
        with pytest.raises(ToolValidationError):
            toolbox_of(self.session.clone()).invoke(name, command)
        return super().call(name, arguments, context)


class Forked(Door):
    def before_turn(self) -> None:
        self.session = self.session.fork()


class FromSnapshot(Door):
    def before_turn(self) -> None:
        toolbox_of(self.session)
        taken = Snapshot.from_json(self.session.snapshot().to_json())
        self.session.reset()
        self.session.rollback(taken)


class Rewound(Door):
    def before_turn(self) -> None:
        version = self.session.version
        toolbox_of(self.session).call(*SHOP, context={"actor": "ghost"})
        self.session.rewind(version)


class Reopened(Door):
    """A process after the other, each with the store of a file."""

    def before_turn(self) -> None:
        if isinstance(self.session.store, SqliteStore):
            self.session.store.close()
        self.session = Session(session_id="shop", store=SqliteStore(self.folder / "plans.db"))
        toolbox_of(self.session)


class Elsewhere(Reopened):
    """Every second call is another process's."""

    worker: ProcessPoolExecutor

    def call(self, name: str, arguments: Any, context: dict[str, str]) -> tuple[bool, str]:
        if int(context["call_id"].removeprefix("call_")) % 2:
            return super().call(name, arguments, context)
        place = [str(self.folder / "plans.db")]
        ((success, message),) = self.worker.submit(
            play_in_process, place, [(name, arguments, context)]
        ).result()
        self.session.refresh()
        return success, message


def installed(entry: EntryPoint) -> bool:
    try:
        import_module(entry.needs)
    except ImportError:
        return False
    return True


@pytest.fixture(scope="module")
def doors() -> Iterator[list[type[Door]]]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as Elsewhere.worker:
        yield [Text, Async, Commands, Forked, FromSnapshot, Rewound, Reopened, Elsewhere]


def test_every_door_gives_the_same_plans_replies_and_history(doors: list[type[Door]]) -> None:
    reached = Counter[str]()
    frameworks = [
        [*each] for _, each in groupby(filter(installed, TABLE), lambda entry: entry.driver.split(":")[0])
    ]

    @settings(max_examples=max(4, EXAMPLES // 4))
    @given(turns(), st.integers(0, 5))
    def check(history: Turns, variant: int) -> None:
        calls = [call for turn in history for call in turn]
        expected = reference(calls, reached)
        reached["turns with several calls"] += any(len(turn) > 1 for turn in history)
        for kind in doors:
            with TemporaryDirectory() as folder:
                door = kind(Path(folder))
                answers = door.play(history)
                played = [row for row in rows_of(door.session) if row["call"][1] == "clerk"]
                rows = [row | kind.differs for row in expected]
                assert (kind, answers) == (kind, [row["result"][::2] for row in expected])
                assert (kind, [row | kind.differs for row in played]) == (kind, rows)
                if isinstance(door.session.store, SqliteStore):
                    door.session.store.close()
        for entries in frameworks:
            check_entry(entries[variant % len(entries)], history, expected)

    check()
    assert min(reached["turns with several calls"], reached["JSON"]) > 0


def check_entry(entry: EntryPoint, history: Turns, expected: list[Any]) -> None:
    """Play a history in a framework's own loop, without the texts that it cannot send."""
    if entry.needs == "langchain":  # its messages have the calls that are not JSON in a list of their own
        history = [sorted(turn, key=lambda call: isinstance(call[1], str)) for turn in history]
        expected = reference([call for turn in history for call in turn], Counter())
    if "not JSON" in entry.cannot:
        history = [[call for call in turn if not isinstance(call[1], str)] for turn in history]
        history = [turn for turn in history if turn]
        expected = reference([call for turn in history for call in turn], Counter())
    session, ids, after = Session(), (f"call_{number}" for number in count(1)), None
    agent, answers = entry.agent(session), list[Any]()
    for first in range(0, len(history), 7):  # a run of some frameworks has at most 10 turns
        talk = play(agent, history[first : first + 7], after, ids)
        answers += [(each.call_id, each.success, each.text) for each in talk.answers]
        after = talk.after
    assert (entry.name, answers) == (entry.name, [(row["call"][0], *row["result"][::2]) for row in expected])
    assert (entry.name, rows_of(session)) == (entry.name, expected)


def command(*arguments: object, stdin: str | None = None) -> tuple[int, Any]:
    """The exit code of a command, and what it printed: as JSON says it, if it is JSON."""
    code, _, printed = run(*map(str, arguments), stdin=stdin).removeprefix("exit code ").partition("\n")
    printed = printed.partition("\n")[2]  # behind the name of the stream
    return int(code), json.loads(printed) if "--json" in arguments and code == "0" else printed


def test_the_command_line_shows_rewinds_forks_copies_and_deletes_as_the_model_does() -> None:
    reached = Counter[str]()
    steering = st.tuples(st.sampled_from(["rewind", "rewind", "fork", "copy"]), st.integers(0, 9))

    @settings(max_examples=max(4, EXAMPLES // 3))
    @given(turns(), st.lists(steering, min_size=6, max_size=6))
    def check(history: Turns, steered: list[tuple[str, int]]) -> None:
        model, plans, name = NaivePlan(), list[Any]([None]), "s0"
        with TemporaryDirectory() as folder:
            path = Path(folder, "0.db")
            for number, (turn, (how, at)) in enumerate(zip(history, steered, strict=False), 1):
                with closing(SqliteStore(path)) as store:
                    box = toolbox_of(Session(session_id=name, store=store))
                    for call in turn:
                        assert box.call(*call).success is model.call(*call)
                        plans.append(model.plan)
                last, after = len(plans) - 1, f"s{number}"
                if how == "copy":
                    there = Path(folder, f"{number}.db")
                    copied = f"Copied {name}: {last} version{'s' * (last > 1)}.\n"
                    assert command("store", "copy", path, there, name) == (0, copied)
                    path = there
                elif at > last:
                    refused = f"planning: the session has the versions 0 to {last}, got {at}\n"
                    given = (name, "--at", at) if how == "fork" else (name, at)
                    assert command(how, path, *given) == (2, refused)
                elif how == "rewind":
                    code, answer = command("rewind", path, name, at, "--json")
                    assert (code, answer["session_id"], answer["version"]) == (0, name, last + 1)
                    plans.append(plans[at])
                else:
                    answer = {"session_id": after, "version": at}
                    assert command("fork", path, name, "--at", at, "--as", after, "--json") == (0, answer)
                    assert command("sessions", "delete", path, name, "--yes")[0] == 0
                    plans, name = plans[: at + 1], after
                reached[f"{how} refused" if at > last and how != "copy" else how] += 1
                model.plan = plans[-1]
            shown = [command("show", path, name, "--at", at, "--json")[1]["plan"] for at in range(len(plans))]
            assert [*shown, command("show", path, name, "--json")[1]["plan"]] == [*plans, plans[-1]]
            changes = command("history", path, name, "--json")[1]
            changed = [before != after for before, after in pairwise(plans)]
            assert [each["version"] for each in changes] == [*range(1, len(plans))]
            assert [bool(each["diff"]) for each in changes] == changed

    check()
    assert reached.keys() == {"rewind", "fork", "copy", "rewind refused", "fork refused"}


@given(turns())
def test_a_replayed_transcript_gives_the_plan_and_counts_what_was_refused(history: Turns) -> None:
    model = NaivePlan()
    accepted = [model.call(*call) for turn in history for call in turn]
    transcript = lines(*(said(*turn) for turn in history))
    assert command("replay", "-", "--json", stdin=transcript) == (0, model.plan)
    counts = f"Calls: {sum(accepted)} accepted, {accepted.count(False)} refused, 0 to other tools."
    code, printed = command("replay", "-", stdin=transcript)
    assert (code, printed.splitlines()[-1]) == (0, counts)
