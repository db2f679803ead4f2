"""What a host does to a plan that it looks at, also through the server of the page."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from page_data import serving, waiting, with_tools

from planning import Plan, ToolValidationError
from planning.plan.commands import ApprovePlan, MoveStep, RejectPlan, RemoveStep
from planning.plan.facts import PlanFacts
from planning.view.sources import StoreSource
from planning.view.steer import command_of, steer
from session import Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A session in a store with a plan that waits for approval, at version 1."""
    return waiting(tmp_path / "plans.db")[0]


def state(session: Session) -> tuple[list[str], str, str | None]:
    """The ids of the steps, the approval, and the reason."""
    session.refresh()
    plan, facts = session.select_latest(Plan), session.select_latest(PlanFacts)
    assert plan is not None
    assert facts is not None
    return [step.step_id for step in plan.steps], facts.approval, facts.reason


ALL = ["S001", "S002", "S003"]
WAITING = (ALL, "waiting", None)
REASON = "reason: say what is wrong with the plan, in 1 to 512 characters"
S009 = "step_id: the plan has no step S009; its steps are S001 to S003"


@pytest.mark.parametrize(
    ("fields", "after"),
    [
        ({"command": "approve"}, (ALL, "approved", None)),
        ({"command": "reject", "reason": " too\n long "}, (ALL, "rejected", "too long")),
        ({"command": "remove", "step_id": "s2"}, (["S001", "S003"], "waiting", None)),
        ({"command": "move", "step_id": "S003", "index": 0}, (["S003", "S001", "S002"], "waiting", None)),
    ],
)
def test_a_command_changes_the_plan_as_the_host(
    session: Session, fields: dict[str, Any], after: tuple[list[str], str, str | None]
) -> None:
    assert steer(session, command_of(fields), 1) == 2
    assert state(session) == after
    assert session.history()[-1].actor == "host"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "command: use approve, reject, remove or move"),
        ({"command": "clear"}, "command: use approve, reject, remove or move"),
        ({"command": "reject"}, REASON),
        ({"command": "reject", "reason": 7}, REASON),
        ({"command": "reject", "reason": "x" * 513}, REASON),
        ({"command": "remove", "step_id": "S009"}, S009),
        ({"command": "remove", "step_id": ["S001"]}, "step_id: expected a string, got list"),
        ({"command": "move", "step_id": "S001", "index": 3}, "index: no such place; send 0 to 2"),
        ({"command": "move", "step_id": "S001", "index": True}, "index: no such place; send 0 to 2"),
        ({"command": "move", "step_id": "S001"}, "index: no such place; send 0 to 2"),
    ],
)
def test_what_does_not_fit_the_plan_is_refused(session: Session, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ToolValidationError) as refusal:
        steer(session, command_of(fields), 1)
    assert str(refusal.value) == reason
    assert session.version == 1


@pytest.mark.parametrize("command", [ApprovePlan(), RejectPlan("No")])
def test_what_does_not_wait_cannot_be_decided(session: Session, command: Any) -> None:
    steer(session, ApprovePlan(), 1)
    with pytest.raises(ToolValidationError, match="nothing waits for approval"):
        steer(session, command, 2)
    with pytest.raises(ToolValidationError, match="nothing waits for approval"):
        steer(Session(), command, 0)


def test_calls_of_other_tools_do_not_make_a_decision_old(session: Session) -> None:
    with_tools(session, look=lambda: "seen").call("look", {})
    assert session.version == 2
    assert steer(session, MoveStep("S003", 0), 1) == 3


def post(link: str, name: str, body: object, method: str = "POST", **headers: str) -> tuple[int, Any]:
    """The status and the text of the answer, or its JSON."""
    parts = urlsplit(link)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=10)
    given = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, f"{parts.path}steer/{name}", given, headers)
    with connection.getresponse() as answer:
        text = answer.read().decode()
        is_json = answer.getheader("content-type") == "application/json"
        return answer.status, json.loads(text) if is_json else text


APPROVE = {"command": "approve", "version": 1}


def test_a_plan_is_approved_against_the_version_that_was_seen(session: Session, tmp_path: Path) -> None:
    with serving(StoreSource(tmp_path / "plans.db", None), steers=True) as link:
        origin = link.removesuffix(urlsplit(link).path)
        session.dispatch(RemoveStep("S002"))
        status, moved = post(link, "nightly", APPROVE, Origin=origin)
        assert (status, moved["version"]) == (409, 2)
        assert moved["message"] == "The plan has changed meanwhile; nothing was done. Look at it again."
        assert [step["step_id"] for step in moved["plan"]["steps"]] == ["S001", "S003"]
        assert state(session) == (["S001", "S003"], "waiting", None)
        assert post(link, "nightly", {**APPROVE, "version": 2}, Origin=origin) == (200, {"version": 3})
        assert state(session) == (["S001", "S003"], "approved", None)
        assert session.history()[-1].actor == "host"


JSON = "send JSON with a command and the version that it is for"
SENT: dict[str, Any] = {"reason": "no", "version": 1, "command": "reject"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", JSON),
        (b"[" * 10_000, JSON),
        ([], JSON),
        ({**SENT, "version": True}, JSON),
        ({**SENT, "version": -1}, JSON),
        ({**SENT, "reason": "x" * 20_000}, "send at most 20,000 bytes"),
        ({**SENT, "command": "remove", "step_id": "S009"}, S009),
    ],
)
def test_what_makes_no_sense_is_refused(session: Session, tmp_path: Path, body: object, reason: str) -> None:
    with serving(StoreSource(tmp_path / "plans.db", None), steers=True) as link:
        assert post(link, "nightly", body) == (400, reason)
    session.refresh()
    assert session.version == 1


def test_only_its_own_page_with_the_link_may_change_a_plan(session: Session, tmp_path: Path) -> None:
    with serving(StoreSource(tmp_path / "plans.db", None), steers=True) as link:
        port = urlsplit(link).port
        for origin in ("http://evil.example", f"http://localhost:{port}", "http://127.0.0.1:1", "null", ""):
            assert post(link, "nightly", APPROVE, Origin=origin) == (403, "Unknown origin")
        assert post(f"http://127.0.0.1:{port}/guess/", "nightly", APPROVE)[0] == 404
        assert post(link, "nightly", APPROVE, Host="evil.example")[0] == 421
        assert post(link, "nightly", APPROVE, "GET")[0] == 405
        assert post(link, "none", APPROVE) == (404, "There is no session none.")
        assert post(link, "%00", APPROVE) == (404, "There is no session \\x00.")
        assert state(session) == WAITING


def test_a_page_that_was_not_asked_to_steer_changes_nothing(session: Session, tmp_path: Path) -> None:
    with serving(StoreSource(tmp_path / "plans.db", None)) as link:
        assert post(link, "nightly", APPROVE)[0] == 404
    assert state(session) == WAITING
