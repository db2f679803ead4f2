"""The server of a page that may change plans: only when it was asked to, and only from its own page."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from page_data import serving, waiting

from planning import Plan
from planning.plan.commands import RemoveStep
from planning.plan.facts import PlanFacts
from planning.view.sources import StoreSource
from session import Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A session in a store whose plan waits for approval, at version 1."""
    return waiting(tmp_path / "plans.db")[0]


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


def approval(session: Session) -> str:
    session.refresh()
    facts = session.select_latest(PlanFacts)
    assert facts is not None
    return facts.approval


APPROVE = {"command": "approve", "version": 1}


def test_a_plan_is_approved_against_the_version_that_was_seen(session: Session, tmp_path: Path) -> None:
    with serving(StoreSource(tmp_path / "plans.db", None), steers=True) as link:
        origin = link.removesuffix(urlsplit(link).path)
        session.dispatch(RemoveStep("S002"))
        status, moved = post(link, "nightly", APPROVE, Origin=origin)
        assert (status, moved["version"]) == (409, 2)
        assert moved["message"] == "The plan has changed meanwhile; nothing was done. Look at it again."
        assert [step["step_id"] for step in moved["plan"]["steps"]] == ["S001", "S003"]
        assert approval(session) == "waiting"
        assert post(link, "nightly", {**APPROVE, "version": 2}, Origin=origin) == (200, {"version": 3})
        assert approval(session) == "approved"
        assert session.history()[-1].actor == "host"


SENT: dict[str, Any] = {"reason": "no", "version": 1, "command": "reject"}


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (b"", (400, "send JSON with a command and the version that it is for")),
        (b"[" * 10_000, (400, "send JSON with a command and the version that it is for")),
        ([], (400, "send JSON with a command and the version that it is for")),
        ({**SENT, "version": True}, (400, "send JSON with a command and the version that it is for")),
        ({**SENT, "version": -1}, (400, "send JSON with a command and the version that it is for")),
        ({**SENT, "reason": "x" * 20_000}, (400, "send at most 20,000 bytes")),
        (
            {**SENT, "command": "remove", "step_id": "S009"},
            (400, "step_id: the plan has no step S009; its steps are S001 to S003"),
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    session: Session, tmp_path: Path, body: object, answer: tuple[int, str]
) -> None:
    with serving(StoreSource(tmp_path / "plans.db", None), steers=True) as link:
        assert post(link, "nightly", body) == answer
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
        assert approval(session) == "waiting"


def test_a_page_that_was_not_asked_to_steer_changes_nothing(session: Session, tmp_path: Path) -> None:
    with serving(StoreSource(tmp_path / "plans.db", None)) as link:
        assert post(link, "nightly", APPROVE)[0] == 404
    assert approval(session) == "waiting"
    plan = session.select_latest(Plan)
    assert plan is not None
    assert len(plan.steps) == 3
