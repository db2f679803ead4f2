"""What all tests share: Hypothesis profiles; and the examples of README, specs and docs, run as tests."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from sybil import Example, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser
from sybil.sybil import SybilCollection

# How many examples each property tries, and how many steps those of machines have at most;
# `--hypothesis-profile=NAME` chooses. A slow machine is not a failure.
for name, examples, steps in (
    ("few", 10, 20),  # on the other versions of Python
    ("quick", 30, 30),
    ("thorough", 100, 50),
    ("long", 3_000, 50),
):
    settings.register_profile(
        name,
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
# For `make mutants`: the same examples every time, and nothing learned from a mutant. Tests run in another
# order and in forked processes there.
settings.register_profile(
    "mutants",
    max_examples=30,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)
settings.load_profile("quick")


def prints_what_it_says(example: Example) -> None:
    """Run a block of a page: what it prints is what its comments at the left edge say."""
    with redirect_stdout(io.StringIO()) as printed:
        PythonEvaluator()(example)
    said = re.findall(r"^# ?(.*)$", example.parsed, re.MULTILINE)
    assert printed.getvalue().splitlines() == said  # noqa: S101 - a test


pytest_collect_file = SybilCollection([
    Sybil(parsers=[PythonCodeBlockParser()], patterns=["README.md"], fixtures=["readme_model"]),
    Sybil(parsers=[PythonCodeBlockParser()], patterns=["specs/*.md"]),
    Sybil(
        parsers=[CodeBlockParser("python", prints_what_it_says)],
        patterns=["docs/*.md", "docs/*/*.md"],
        fixtures=["readme_model"],
    ),
]).pytest()  # fmt: skip

SCRIPT: tuple[Any, ...] = (
    [
        (
            "planning_setup_plan",
            {"objective": "Fix the login", "initial_steps": ["Reproduce the bug", "Fix it"]},
        )
    ],
    [("planning_mark_step", {"step_id": "S001", "status": "done"})],
    "The bug is reproduced.",
    "The login works again.",
)


@pytest.fixture
def readme_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The models that README and docs ask: a server on this machine that plays a script."""
    from planning.testing import ScriptedModel  # noqa: PLC0415 - no other test needs it

    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with ScriptedModel(*SCRIPT) as model:
        for name, url in (("OPENAI", model.openai_url), ("ANTHROPIC", model.anthropic_url)):
            monkeypatch.setenv(f"{name}_API_KEY", "sk-test")
            monkeypatch.setenv(f"{name}_BASE_URL", url)
        yield
