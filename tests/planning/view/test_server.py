"""The server of the page: who is answered, what clients follow, its list, and what a host changes by it."""

from __future__ import annotations

import http.client
import json
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
from page_data import call, embedded, kept, of_store, run_of, serving, waiting, with_tools
from run_folders import TOOLS, Running, plan, step

import planning.serving
from planning import Plan, ToolValidationError
from planning.plan.commands import ApprovePlan, MoveStep, RemoveStep
from planning.plan.facts import PlanFacts
from planning.view import feeds, sources
from planning.view.page import policy
from planning.view.sources import StoreSource
from planning.view.steer import steer
from session import Session
from session.stores import SqliteStore


class Client:
    """A client of a server, which has its link."""

    def __init__(self, link: str) -> None:
        parts = urlsplit(link)
        assert (parts.hostname, parts.path[-1]) == ("127.0.0.1", "/")
        self.port, self.base = parts.port, parts.path[:-1]

    def open(
        self, path: str, *, is_whole: bool = False, method: str = "GET", body: bytes = b"", **headers: str
    ) -> http.client.HTTPResponse:
        """The answer to a request, of which nothing was read yet."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path if is_whole else self.base + path, body, named)
        return connection.getresponse()

    def get(self, path: str, **options: Any) -> tuple[int, str]:
        """The status and the text of an answer."""
        with self.open(path, **options) as answer:
            return answer.status, answer.read().decode()

    def steer(self, name: str, body: object, **options: Any) -> tuple[int, Any]:
        """Ask for a change of a plan; the status of the answer, and its text or JSON."""
        given = body if isinstance(body, bytes) else json.dumps(body).encode()
        with self.open(f"/steer/{name}", **{"method": "POST", "body": given, **options}) as answer:
            text = answer.read().decode()
            is_json = answer.getheader("content-type") == "application/json"
            return answer.status, json.loads(text) if is_json else text

    def json(self, path: str) -> Any:
        status, text = self.get(path)
        assert status == 200
        return json.loads(text)

    def events(self, path: str, *kinds: str, **options: Any) -> Iterator[tuple[str, Any]]:
        """The events of a stream, as they come; without kinds, the changes and problems of a session."""
        kinds = kinds or ("change", "problem")
        with self.open(path, **options) as answer:
            kind = ""
            while line := answer.readline().decode():
                name, _, value = line.rstrip("\n").partition(": ")
                kind = value if name == "event" else kind
                if name == "data" and kind in kinds:
                    yield kind, json.loads(value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one session."""
    a_plan(tmp_path / "plans.db", "nightly", "One", "Two")
    return tmp_path / "plans.db"


def a_plan(path: Path, name: str, *steps: str) -> None:
    """Let another program make a session with a plan."""
    call(kept(path, name)[1], "setup_plan", objective=f"Plan {name}", initial_steps=steps or ["One"])


@contextmanager
def following(path: Path, **options: bool) -> Iterator[Client]:
    """A client of the page of a store."""
    with serving(StoreSource(path, None), **options) as link:
        yield Client(link)


def mark(path: Path, name: str = "nightly", status: str = "done") -> None:
    """Let another program change a session."""
    call(kept(path, name)[1], "mark_step", step_id="S001", status=status)


def test_the_page_shows_the_only_session_or_the_list_and_each_session_by_its_link(path: Path) -> None:
    def page(client: Client, path: str = "/") -> Any:
        return embedded(client.get(path)[1].encode())

    with following(path) as client:
        assert page(client) == {"mode": "live", "base": client.base, "session": "nightly"}
    a_plan(path, "other")
    with following(path) as client:
        assert [page(client, each)["session"] for each in ("/", "/s/nightly")] == [None, "nightly"]
        _, listed = next(client.events("/events", "sessions"))
        assert [each["id"] for each in listed] == ["other", "nightly"]
    with serving(StoreSource(path, "nightly")) as link:
        assert page(Client(link))["session"] == "nightly"


NOTHING = "There is nothing here. Open the whole link that 'planning' printed."
ELSEWHERE = "This server is 127.0.0.1 and no other. Open the link that 'planning' printed."


def test_who_has_not_the_link_or_another_name_for_this_machine_is_refused(path: Path) -> None:
    with following(path) as client:
        for wrong in ("/", "/x/", "/favicon.ico", client.base[:-1] + "/", "/%ff/"):
            assert client.get(wrong, is_whole=True) == (404, NOTHING)
        for name in ("evil.example", f"evil.example:{client.port}", "127.0.0.1.evil.example", "[", ""):
            assert client.get("/", Host=name) == (421, ELSEWHERE)
        for name in (f"localhost:{client.port}", "127.0.0.1", "[::1]:80"):
            assert client.get("/", Host=name)[0] == 200
        for origin, status in ((f"127.0.0.1:{client.port}", 200), ("localhost", 403)):
            assert client.get("/", Origin=f"http://{origin}")[0] == status
        assert client.get("/run/none.json") == (404, "There is no session none.")
        assert client.get("/run/%00.json") == (404, "There is no session \\x00.")
        assert client.get("/events/nightly?after=x") == (400, "after=x is not a version.")
        assert client.get("/events/none") == (404, "There is no session none.")


def test_each_answer_says_what_it_may_do_and_that_it_is_not_to_be_kept(path: Path) -> None:
    with following(path) as client, client.open("/") as answer:
        found = {name.lower(): value for name, value in answer.getheaders()}
    assert int(found.pop("content-length")) > 10_000
    assert found == {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": f"{policy(is_live=True)}; frame-ancestors 'none'",
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "cross-origin-resource-policy": "same-origin",
        "connection": "close",
    }


def test_a_change_of_another_program_is_sent_to_all_who_follow(path: Path) -> None:
    source = StoreSource(path, None)
    with patch.object(source, "open", wraps=source.open) as opened, serving(source) as link:
        client = Client(link)
        streams = [client.events("/events/nightly?after=0") for _ in range(20)]
        assert [next(stream)[1]["v"] for stream in streams] == [1] * 20
        mark(path)
        told = [next(stream) for stream in streams]
        assert told == [("change", of_store(path)["changes"][1])] * 20
        mark(path, status="pending")  # who comes back is sent what came meanwhile
        assert next(client.events("/events/nightly?after=1"))[1]["v"] == 2
        assert next(client.events("/events/nightly?after=0", Last_Event_ID="2"))[1]["v"] == 3
        opened.assert_called_once()  # all share one reading of the session


def test_the_list_is_told_which_sessions_changed_and_which_are_new(path: Path) -> None:
    with following(path) as client:
        stream = client.events("/events", "sessions")
        (first,) = next(stream)[1]
        assert (first["id"], first["done"], first["total"]) == ("nightly", 0, 2)
        mark(path)
        a_plan(path, "other")
        told: dict[str, Any] = {}
        while len(told) < 2 or told["nightly"]["done"] == 0:
            told |= {each["id"]: each for each in next(stream)[1]}
        counts = {name: (each["done"], each["total"]) for name, each in told.items()}
        assert counts == {"nightly": (1, 2), "other": (0, 1)}


@pytest.mark.slow
def test_a_client_that_reads_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning.serving, "_PATIENCE", 0.3)
    page = b"x" * 50_000_000
    with serving(page) as link:
        client = Client(link)
        with client.open("/") as answer, pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            time.sleep(2)
            answer.read()
        assert client.get("/")[1] == page.decode()


@pytest.mark.slow
def test_damage_and_the_loss_of_the_store_are_told_and_the_page_goes_on(path: Path) -> None:
    mark(path)
    with following(path) as client:
        stream = client.events("/events/nightly?after=0")
        assert [next(stream)[1]["v"] for _ in range(2)] == [1, 2]
        path.rename(path.with_suffix(".away"))
        assert next(stream) == ("problem", {"text": f"the store {path} is gone"})
        _, listed = next(client.events("/events", "list"))
        assert listed == {"more": False, "problem": f"the store {path} is gone", "reading": 0, "gone": []}
        assert not path.exists()
        path.with_suffix(".away").rename(path)
        assert next(stream) == ("problem", {"text": None})
        mark(path, status="pending")
        assert next(stream)[1]["v"] == 3


def test_a_session_that_cannot_be_read_at_all_says_so(path: Path) -> None:
    with serving(StoreSource(path, "nightly")) as link:
        client = Client(link)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE sessions SET about = 'x'")
            connection.commit()
        problem = "the record of session 'nightly' is damaged"
        assert client.json("/run/nightly.json")["problem"] == problem
        assert next(client.events("/events", "list"))[1]["problem"] == problem


def test_each_session_is_read_once_until_it_changes(tmp_path: Path) -> None:
    asked = []
    for count in (4, 40):
        path = tmp_path / f"{count}.db"
        for number in range(count):
            a_plan(path, f"s{number:02}")
        source = StoreSource(path, None)
        statements, store = list[str](), source._store
        assert isinstance(store, SqliteStore)
        store._reader.connected().set_trace_callback(statements.append)
        found = source.listed()
        names = [f"s{number:02}" for number in reversed(range(count))]
        listed = [(each["id"], each["objective"]) for each in found["sessions"]]
        assert listed == [(name, f"Plan {name}") for name in names]
        first = len(statements)
        assert source.listed() == found
        again = len(statements) - first
        mark(path, "s01")
        changed = [(each["id"], each["state"]) for each in source.listed()["sessions"][:2]]
        assert changed == [("s01", "finished"), (names[0], "working")]
        asked.append((first / count, again))
    assert asked[0][0] == pytest.approx(asked[1][0], abs=2)
    assert asked[0][1] == asked[1][1] <= 4


def test_a_long_list_is_read_bit_by_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plans.db"
    for number in range(3):
        a_plan(path, f"s{number}")
    monkeypatch.setattr(sources, "_MOMENT", -1)
    source, heads = StoreSource(path, None), SqliteStore(path).sessions()
    seen, changed = [], [round(head.changed_at.timestamp(), 3) for head in heads]
    for _ in range(4):
        found = source.listed()
        assert [each["changed"] for each in found["sessions"]] == changed
        seen.append((found["reading"], [each.get("state", "?") for each in found["sessions"]]))
    assert seen == [
        (2, ["working", "?", "?"]),
        (1, ["working", "working", "?"]),
        (0, ["working", "working", "working"]),
        (0, ["working", "working", "working"]),
    ]
    with following(path) as client:
        stream = client.events("/events", "list")
        while next(stream)[1]["reading"]:
            pass


def test_a_session_that_is_deleted_leaves_the_list(path: Path) -> None:
    a_plan(path, "other")
    with following(path) as client:
        stream = client.events("/events", "list")
        assert next(stream)[1]["gone"] == []
        SqliteStore(path).delete("other")
        assert next(stream)[1] == {"more": False, "problem": None, "reading": 0, "gone": ["other"]}


@pytest.mark.slow
def test_a_run_whose_process_is_killed_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "_LOOKED", 0.1)
    monkeypatch.setattr(feeds, "_LIST_POLLED", 0.1)
    (tmp_path / "step_tools.py").write_text(TOOLS)
    (tmp_path / "nap.json").write_text(plan(step("sleeper")))
    path = tmp_path / "plans.db"
    running = Running(tmp_path, "nap.json", "run", "--tools", "step_tools:tools", "--store", str(path))
    running.until_called("sleeper")
    run_of(Session(session_id="other", store=SqliteStore(path)))
    with following(path) as client:
        streams = [client.events("/events/run?after=0", "health"), client.events("/events", "sessions")]
        first = [next(stream)[1] for stream in streams]
        assert {name: first[0][name] for name in ("state", "step")} == {"state": "working", "step": "sleeper"}
        assert {each["id"]: each["state"] for each in first[1]} == {"other": "finished", "run": "working"}
        running.signal(signal.SIGKILL)
        assert running.ended() == -signal.SIGKILL
        assert next(streams[0])[1] == {**first[0], "state": "stopped", "cut": True}
        assert next(streams[1])[1] == [
            {**each, "state": "stopped"} for each in first[1] if each["id"] == "run"
        ]


# What a host does to a plan that it looks at, also through the server of the page


@pytest.fixture
def session(path: Path) -> Session:
    """A session in a store with a plan that waits for approval, at version 1."""
    return waiting(path, "host")[0]


def state(session: Session) -> tuple[list[str], str, str | None]:
    """The ids of the steps, the approval, and the reason."""
    session.refresh()
    plan, facts = session.select_latest(Plan), session.select_latest(PlanFacts)
    assert plan is not None
    assert facts is not None
    return [step.step_id for step in plan.steps], facts.approval, facts.reason


COMMANDS: list[tuple[dict[str, Any], tuple[list[str], str, str | None]]] = [
    ({"command": "approve"}, (["S001", "S002", "S003"], "approved", None)),
    ({"command": "reject", "reason": " too\n long "}, (["S001", "S002", "S003"], "rejected", "too long")),
    ({"command": "remove", "step_id": "s2"}, (["S001", "S003"], "waiting", None)),
    ({"command": "move", "step_id": "S003", "index": 0}, (["S003", "S001", "S002"], "waiting", None)),
]


def test_commands_change_the_plan_as_the_host(path: Path) -> None:
    with following(path, steers=True) as client:
        for fields, after in COMMANDS:
            session = waiting(path, name := fields["command"])[0]
            assert client.steer(name, {**fields, "version": 1}) == (200, {"version": 2})
            assert (state(session), session.history()[-1].actor) == (after, "host")
        for fields, _ in COMMANDS[:2]:
            found = client.steer("approve", {**fields, "version": 2})
            assert found == (400, "nothing waits for approval")
    with pytest.raises(ToolValidationError, match="nothing waits for approval"):
        steer(Session(), ApprovePlan(), 0)


def test_calls_of_other_tools_do_not_make_a_decision_old(session: Session) -> None:
    with_tools(session, look=lambda: "seen").call("look", {})
    assert session.version == 2
    assert steer(session, MoveStep("S003", 0), 1) == 3


APPROVE = {"command": "approve", "version": 1}


def test_a_plan_is_approved_against_the_version_that_was_seen(session: Session, path: Path) -> None:
    with following(path, steers=True) as client:
        session.dispatch(RemoveStep("S002"))
        origin = f"http://127.0.0.1:{client.port}"
        assert client.steer("host", {"command": "remove", "step_id": "S001", "version": 1})[0] == 409
        status, moved = client.steer("host", APPROVE, Origin=origin)
        assert (status, moved["version"]) == (409, 2)
        assert moved["message"] == "The plan has changed meanwhile; nothing was done. Look at it again."
        assert [step["step_id"] for step in moved["plan"]["steps"]] == ["S001", "S003"]
        assert state(session) == (["S001", "S003"], "waiting", None)
        assert client.steer("host", {**APPROVE, "version": 2}, Origin=origin) == (200, {"version": 3})
        assert state(session) == (["S001", "S003"], "approved", None)


JSON = "send JSON with a command and the version that it is for"
REASON = "reason: say what is wrong with the plan, in 1 to 512 characters"
PLACE = "index: no such place; send 0 to 2"
NO_STEP = "step_id: the plan has no step S009; its steps are S001 to S003"
REFUSED: list[tuple[bytes | dict[str, Any], str]] = [
    (b"", JSON),
    (b"[" * 10_000, JSON),
    ({"command": "approve", "version": True}, JSON),
    ({"command": "approve", "version": -1}, JSON),
    ({"command": "reject", "reason": "x" * 20_000}, "send at most 20,000 bytes"),
    ({}, "command: use approve, reject, remove or move"),
    ({"command": "reject"}, REASON),
    ({"command": "reject", "reason": "x" * 513}, REASON),
    ({"command": "remove", "step_id": "S009"}, NO_STEP),
    ({"command": "remove", "step_id": ["S001"]}, "step_id: expected a string, got list"),
    ({"command": "move", "step_id": "S001", "index": 3}, PLACE),
    ({"command": "move", "step_id": "S001", "index": True}, PLACE),
    ({"command": "move", "step_id": "S001"}, PLACE),
]


def test_what_makes_no_sense_or_does_not_fit_the_plan_is_refused(session: Session, path: Path) -> None:
    with following(path, steers=True) as client:
        for given, reason in REFUSED:
            body = given if isinstance(given, bytes) else {"version": 1, **given}
            assert client.steer("host", body) == (400, reason)
    session.refresh()
    assert session.version == 1


def test_only_its_own_page_with_the_link_may_change_a_plan(session: Session, path: Path) -> None:
    with following(path, steers=True) as client:
        others = ("evil.example", f"localhost:{client.port}", "127.0.0.1:1")
        for origin in (*(f"http://{each}" for each in others), "null", ""):
            assert client.steer("host", APPROVE, Origin=origin) == (403, "Unknown origin")
        assert client.get("/guess/steer/host", is_whole=True, method="POST")[0] == 404
        assert client.steer("host", APPROVE, Host="evil.example")[0] == 421
        assert client.steer("host", APPROVE, method="GET")[0] == 405
        for name, shown in (("none", "none"), ("%00", "\\x00")):
            assert client.steer(name, APPROVE) == (404, f"There is no session {shown}.")
        assert state(session)[1] == "waiting"


def test_a_page_that_was_not_asked_to_steer_changes_nothing(session: Session, path: Path) -> None:
    with following(path) as client:
        assert client.steer("host", APPROVE)[0] == 404
    assert state(session)[1] == "waiting"
