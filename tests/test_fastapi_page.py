"""The page "Serve an agent with FastAPI": its app with two workers of uvicorn and a PostgreSQL server."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from browser import Browser
from postgres_server import shared_server

from planning.testing import ScriptedModel

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "serve-with-fastapi.md"
USERS = ("bob", "fay", "gus", "hal", "jan", "kim")
SERVED = f"""
import os
from app import USERS, app

USERS.update({{name: name for name in {USERS}}})

async def served(scope, receive, send):
    '''Name the worker in each answer.'''
    async def named(message):
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], (b"x-worker", str(os.getpid()).encode())]
        await send(message)
    await app(scope, receive, named)
"""
PATIENCE = 120.0  # seconds that the server may take for anything
SETUP = [("planning_setup_plan", {"objective": "Ship 2.1", "initial_steps": ["Test it", "Deploy it"]})]
DEPLOY = [("deploy", {"version": "2.1"})]
OPEN = "Ship 2.1 (active, 0 of 2 done)\nS001 pending: Test it\nS002 pending: Deploy it"
HALF = "Ship 2.1 (active, 1 of 2 done)\nS001 done: Test it\nS002 pending: Deploy it"


def mark(step: str) -> list[tuple[str, dict[str, str]]]:
    """A turn that marks a step done."""
    return [("planning_mark_step", {"step_id": step, "status": "done"})]


class Client:
    """A connection of a user to the worker that has accepted it."""

    def __init__(self, port: int, user: str) -> None:
        self.connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._user = user
        self.get("/plan")

    def ask(self, method: str, path: str, body: object = None) -> HTTPResponse:
        """The answer to a request."""
        headers = {"Cookie": f"token={self._user}", "Content-Type": "application/json"}
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self.connection.getresponse()
        self.worker = int(answer.headers["x-worker"])
        return answer

    def get(self, path: str) -> Any:
        return json.loads(self.ask("GET", path).read())

    def chat(self, text: str, path: str = "/chat") -> tuple[list[str], str]:
        """What the calls of an answer returned, and its text."""
        stream = self.ask("POST", path, {"text": text}).read().decode()
        return said(stream, "call"), "".join(said(stream, "text"))

    def decide(self, digest: str, **decision: object) -> int:
        """The status of a decision about a plan."""
        answer = self.ask("POST", "/decision", {"digest": digest, "approve": True} | decision)
        answer.read()
        return answer.status


def said(stream: str, event: str) -> list[Any]:
    """The data of the events of a name."""
    return [json.loads(data) for data in re.findall(f"^event: {event}\ndata: (.*)$", stream, re.MULTILINE)]


class Served:
    """The app with its two workers, and the turns that its model is about to take."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.turns: deque[Any] = deque()
        self.opened = ExitStack()

    def take_turn(self, body: Mapping[str, Any]) -> Any:
        """The model's next turn; one that is a function is made of the request."""
        turn = self.turns.popleft()
        return turn(body) if callable(turn) else turn

    def client(self, user: str, but: int | None = None) -> Client:
        """A client of a user, of another worker than that one."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                client = Client(self.port, user)
            except (OSError, HTTPException):  # the server starts, or a worker was killed
                time.sleep(0.05)
                continue
            self.opened.callback(client.connection.close)
            if client.worker != but:
                return client
        raise AssertionError("no such worker answers")

    def pair(self, user: str) -> tuple[Client, Client]:
        """A client of each worker; the model has no turns of an earlier test."""
        self.turns.clear()
        first = self.client(user)
        return first, self.client(user, but=first.worker)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The app of the page, as its console block starts it."""
    folder = tmp_path_factory.mktemp("served")
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (folder / "app.py").write_text("\n".join(blocks[:-1]), encoding="utf-8")  # the last one is for a reader
    (folder / "served.py").write_text(SERVED, encoding="utf-8")
    with socket.socket() as free, ExitStack() as stack:
        free.bind(("127.0.0.1", 0))
        app = Served(free.getsockname()[1])
        free.close()
        model = stack.enter_context(ScriptedModel(*[app.take_turn] * 100))
        environment = os.environ | {
            "DATABASE_URL": new_database(),
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": model.openai_url,
        }
        create = [sys.executable, "-m", "planning", "store", "create", environment["DATABASE_URL"]]
        subprocess.run(create, env=environment, check=True, stdout=subprocess.DEVNULL)
        options = f"served:served --workers 2 --port {app.port} --log-level critical"
        options += " --timeout-worker-healthcheck 60 --timeout-keep-alive 600"
        command = [sys.executable, "-m", "uvicorn", *options.split()]
        server = subprocess.Popen(command, cwd=folder, env=environment)
        stack.callback(server.wait, PATIENCE)
        stack.callback(server.terminate)
        stack.enter_context(app.opened)
        yield app


def new_database() -> str:
    """The address of a database of its own on the server."""
    import psycopg

    server = shared_server()
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute("CREATE DATABASE served")
    return f"{server.url.rpartition('/')[0]}/served"


def request_of(served: Served, client: Any, text: str) -> Mapping[str, Any]:
    """What the model is sent when a client says something."""
    requests: list[Mapping[str, Any]] = []

    def look(body: Mapping[str, Any]) -> str:
        requests.append(body)
        return "Nothing."

    served.turns.append(look)
    assert client.chat(text) == ([], "Nothing.")
    (request,) = requests
    return request


def test_an_approval_through_one_worker_counts_in_the_other(served: Served) -> None:
    one, other = served.pair("bob")
    served.turns.extend([SETUP, DEPLOY, "I wait."])
    assert one.chat("Ship it.")[0][1] == (
        "deploy was not called: the plan waits for approval; end your turn and ask the user to approve it"
    )
    shown = other.get("/plan")["waiting"]
    assert other.decide(shown) == 200
    assert one.decide(shown) == 409  # it does not wait any more
    served.turns.extend([DEPLOY, "Done."])
    assert one.chat("Go on.") == (["2.1 is live"], "Done.")


def test_a_worker_that_is_killed_in_an_answer_loses_nothing(served: Served) -> None:
    one, other = served.pair("fay")

    def kill(_body: Mapping[str, Any]) -> str:
        os.kill(one.worker, signal.SIGKILL)
        return "nobody reads this"

    served.turns.extend([SETUP, mark("S001"), kill])
    with pytest.raises((HTTPException, OSError)):
        one.chat("Ship it.")
    assert other.get("/plan")["plan"] == HALF
    request = request_of(served, other, "And now?")
    assert [message["role"] for message in request["messages"]] == [
        *("system", "user", "assistant", "tool", "assistant", "tool", "user")
    ]
    third = served.client("fay", but=other.worker)  # the server has started another one
    assert third.worker != one.worker
    assert third.get("/plan")["plan"] == HALF


def test_a_user_never_sees_the_plan_of_another(served: Served) -> None:
    (gus, gus_too), (hal, hal_too) = served.pair("gus"), served.pair("hal")
    served.turns.extend([SETUP, "Made."])
    gus.chat("Ship it.")
    shown = gus_too.get("/plan")["waiting"]
    assert [client.get("/plan")["plan"] for client in (gus, gus_too)] == [OPEN, OPEN]
    assert [client.get("/plan")["plan"] for client in (hal, hal_too)] == [None, None]
    assert [client.decide(shown) for client in (hal, hal_too)] == [409, 409]
    assert "Ship" not in json.dumps(request_of(served, hal_too, "What is there?"))
    assert served.client("nobody").get("/plan") == {"detail": "log in first"}


@pytest.mark.browser
def test_the_button_approves_the_plan_that_is_shown(served: Served, browser: Browser) -> None:
    one, other = served.pair("kim")
    served.turns.extend([SETUP, "I wait."])
    one.chat("Ship it.")
    with browser.page() as page:
        page.open(f"http://127.0.0.1:{served.port}/")
        page.evaluate("document.cookie = 'token=kim'")
        page.open(f"http://127.0.0.1:{served.port}/")
        page.wait("document.getElementById('approve')?.hidden === false")
        assert page.text("#plan") == OPEN
        page.click("#approve")
        page.wait("document.getElementById('approve').hidden")
    assert [client.get("/plan")["waiting"] for client in (one, other)] == [None, None]


def test_langchain_has_the_same_conversation_and_the_same_plan(served: Served) -> None:
    one, other = served.pair("jan")
    served.turns.extend([SETUP, mark("S001"), "Half is done."])
    one.chat("Ship it.")
    assert other.chat("Go on.", "/langchain") == (["S002 done. Plan completed."], "Both steps are done.")
    request = request_of(served, one, "What was done?")
    assert [message["content"] for message in request["messages"]][-3:] == [
        "S002 done. Plan completed.",
        "Both steps are done.",
        "What was done?",
    ]
