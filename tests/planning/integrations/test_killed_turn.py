"""A process that is killed in a call, and the next one that carries out the response that was stored."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from driver_clients import blocks, chat, items
from test_numbered_calls import NAMED, block_events, chunked, itemised

from planning import Toolbox
from planning.integrations import anthropic, openai
from planning.tools import Tool
from session import Session
from session.stores import SqliteStore

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
CALLS = (("call_0", ("mail", {"to": "bob"})), ("call_1", ("mail", {"to": "ada"})))
UNKNOWN = (
    "mail may have taken effect: this call was begun before, and its result is not known. Check what it did "
    "before you call it again."
)


class Mails:
    """A tool that writes to a file, and kills its process where it is asked to."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.sent = folder, folder / "mails"

    def toolbox(self, *, kills: bool) -> Toolbox:
        def mail(arguments: dict[str, str]) -> str:
            with self.sent.open("a") as file:
                file.write(arguments["to"] + "\n")
            if kills and arguments["to"] == "ada":
                os.kill(os.getpid(), signal.SIGKILL)
            return f"sent to {arguments['to']}"

        session = Session(session_id="run-7", store=SqliteStore(self.folder / "plans.db"))
        tool = Tool("mail", "Mail.", mail, parameters=SCHEMA, idempotent=False, blocking=False)
        return Toolbox([tool], session=session)

    def carry_out(self, module: Any, response: Any) -> list[str]:
        """The answers to the calls of a response, which a process that was killed has begun."""
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            module.run_calls(response, self.toolbox(kills=True))
            os._exit(1)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        answers = module.run_calls(response, self.toolbox(kills=False))
        found = answers[0]["content"] if module is anthropic else answers
        return [each.get("content") or each["output"] for each in found]


FORMS: list[Any] = [
    *((openai, form) for form in (chat, items, itemised)),
    *((anthropic, form) for form in (blocks, block_events)),
]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("module", "stored", "answers", "sent"),
    [
        *((each, form(NAMED, *CALLS), ["sent to bob", UNKNOWN], ["bob", "ada"]) for each, form in FORMS),
        (openai, chunked(NAMED, CALLS[1]), [UNKNOWN], ["ada"]),
        *(  # without its response a turn names nothing
            (each, each.turn(form(NAMED, *CALLS)), ["sent to bob", "sent to ada"], ["bob", "ada"] * 2)
            for each, form in ((openai, chat), (openai, items), (anthropic, blocks))
        ),
    ],
    ids=range(9),
)
def test_a_stored_response_sends_each_mail_once(
    module: Any, stored: Any, answers: list[str], sent: list[str], tmp_path: Path
) -> None:
    mails = Mails(tmp_path)
    assert mails.carry_out(module, json.loads(json.dumps(stored))) == answers
    assert mails.sent.read_text().split() == sent
