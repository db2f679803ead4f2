"""Run the tests with the lowest version of each dependency that pyproject.toml admits: in ``make soak``.

usage: scripts/lowest.py PYTHON [EXTRA...]     every extra unless named; "core" has none

Each extra has its environment in ``.venvs/lowest``: the wheel with the extra, where uv resolves the
requirements of the core and of the extra to their lowest versions, and all others to the newest.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
UV_VENV, VENVS = ROOT / ".venvs" / "uv", ROOT / ".venvs" / "lowest"
FRAMEWORKS = "tests/planning/integrations"
PROMISES = [
    f"{FRAMEWORKS}/test_{name}.py"
    for name in (
        "promises",
        "policies",
        "positions",
        "turns",
        "tools_of_others",
        "reminders",
    )
]
"""The promises of every framework; those of a framework that is not installed are skipped."""
CORE = [
    "tests/session",
    "tests/planning/plan",
    "tests/planning/policy",
    "tests/planning/suite",
    "tests/planning/observe",
    "tests/planning/prompt",
    "tests/planning/reading",
    "tests/planning/tools",
    "tests/planning/testing",
]
TESTS = {
    "core": CORE,
    "cli": ["tests/planning/cli"],
    "retry": ["tests/planning/tools/test_guard.py", "tests/planning/workflow/run/test_run_calls.py"],
    "limits": ["tests/planning/tools/test_rate_limit.py"],
    "docstrings": ["tests/planning/tools/parameters", "tests/planning/tools/test_tool_contract.py"],
    "redis": ["tests/planning/tools/test_rate_limit_redis.py"],
    "workflow": ["tests/planning/workflow"],
    "processes": [
        "tests/planning/workflow/executors/test_jobs.py",
    ],
    "distributed": ["tests/planning/workflow/executors/test_run_on_dask.py"],
    "agent": ["tests/planning/agent"],
    "duckdb": ["tests/planning/agent/databases", "tests/planning/agent/sql", "tests/planning/agent/corpus"],
    "openai": [
        "tests/planning/agent/test_openai_chat.py",
        f"{FRAMEWORKS}/test_provider_clients.py",
        *PROMISES,
    ],
    "openai-agents": [f"{FRAMEWORKS}/test_openai_agents.py", *PROMISES],
    "anthropic": [f"{FRAMEWORKS}/test_provider_clients.py", *PROMISES],
    "testing": ["tests/planning/testing", "tests/session/test_session_machine.py"],
    "mcp": [f"{FRAMEWORKS}/mcp", *PROMISES],
    "view": ["tests/planning/view"],
    "langchain": [f"{FRAMEWORKS}/test_langchain*.py", *PROMISES],
    "pydantic-ai": [f"{FRAMEWORKS}/test_pydantic_ai*.py", *PROMISES],
    "google-adk": [f"{FRAMEWORKS}/test_google_adk*.py", *PROMISES],
    "opentelemetry": [f"{FRAMEWORKS}/test_opentelemetry.py"],
    "postgres": [
        "tests/session/stores/test_store_suite.py",
        "tests/session/stores/test_postgres_store.py",
        "tests/planning/agent/databases/test_postgres.py",
    ],
}
WITHOUT = {"view": {"mcp"}}
"""What the tests of the core need that does not go with the lowest versions of an extra."""
BESIDE = {
    "cli": ["view", "workflow", "agent", "mcp", "postgres", "openai", "duckdb"],
    "agent": ["openai", "duckdb"],
    "duckdb": ["agent", "openai"],
    "postgres": ["agent", "openai"],
    "pydantic-ai": ["openai", "anthropic"],
    "openai": ["agent", "langchain"],
    "limits": ["redis"],
    "workflow": ["processes", "distributed"],
}
"""Extras that the tests of an extra need too, in their newest versions."""
TOOLS = {
    "agent": {"langgraph-checkpoint-sqlite"},
    "google-adk": {"sqlalchemy", "aiosqlite"},
    "langchain": {"langgraph-checkpoint-sqlite"},
    "opentelemetry": {"opentelemetry-sdk"},
}
"""What they need of the extra ``test``."""

OTHERS = "not slow and not browser and not server and not postgres"
MARKS = {"redis": "server", "postgres": "not slow"}
"""The marks of the tests that run; those that need a server run for the extra that talks to it."""


def name_of(requirement: str) -> str:
    """The name of what a requirement asks for."""
    match = re.match(r"[\w.-]+", requirement)
    assert match, requirement  # noqa: S101 - pyproject.toml is checked where it is read
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def without_zeros(version: str) -> str:
    """A version as short as it can be: 2.0 and 2.0.0 are one."""
    return re.sub(r"(\.0)+$", "", version)


def lowest(uv: str, python: str, requirements: Iterable[str]) -> list[str]:
    """The requirements, each with the lowest version that goes with the others."""
    asked = "\n".join(requirements)
    resolved = subprocess.run(
        [uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--resolution=lowest-direct",
         f"--python={python}", "-"],
        input=asked, text=True, check=True, stdout=subprocess.PIPE,
    ).stdout  # fmt: skip
    direct = {name_of(each) for each in asked.splitlines()}
    return [line for line in resolved.splitlines() if name_of(line) in direct]


def unreachable(declared: Iterable[str], pins: Iterable[str]) -> list[str]:
    """The requirements whose lowest version does not go with the others: it is declared too low."""
    versions = dict(pin.split("==") for pin in pins)
    lower = [(each, re.search(r">=([\d.]+)", each)) for each in declared]
    return [
        f"{each}: the lowest that goes with the others is {versions[name_of(each)]}"
        for each, bound in lower
        if bound and without_zeros(versions[name_of(each)]) != without_zeros(bound[1])
    ]


def prepare(uv: str, python: str, extra: str, wheel: Path) -> list[str]:
    """Make the environment of an extra; returns what is wrong with its lowest versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    offered, venv = project["optional-dependencies"], VENVS / extra
    own = [*project["dependencies"], *offered.get(extra, ())]
    pins = lowest(uv, python, own)
    print(f"== {extra}: {' '.join(pins)}", flush=True)
    known = {name_of(each) for each in own} | WITHOUT.get(extra, set())
    tools = [each for each in offered["test-core"] if name_of(each) not in known]
    tools += [each for each in offered["test"] if name_of(each) in TOOLS.get(extra, ())]
    extras = ",".join([extra, *BESIDE.get(extra, ())]).removeprefix("core")
    command = [uv, "venv", "--quiet", "--clear", f"--python={python}", str(venv)]
    subprocess.run(command, check=True)
    subprocess.run(
        [uv, "pip", "install", "--quiet", f"--python={venv}", "--constraint=-", f"{wheel}[{extras}]", *tools],
        input="\n".join(pins), text=True, check=True,
    )  # fmt: skip
    return unreachable(own[len(project["dependencies"]) :] or own, pins)


def main(python: str, *extras: str) -> int:
    """Run the tests of each extra; the exit code is 1 when those of any fail."""
    if unknown := set(extras) - set(TESTS):
        print(f"lowest: no tests are named for {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    uv = str(UV_VENV / "bin" / "uv")
    if not Path(uv).exists():
        subprocess.run([python, "-m", "venv", str(UV_VENV)], check=True)
        subprocess.run([str(UV_VENV / "bin" / "pip"), "install", "--quiet", "uv"], check=True)
    with TemporaryDirectory() as folder:
        subprocess.run([uv, "build", "--quiet", "--wheel", f"--out-dir={folder}", str(ROOT)], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        failed = []
        for extra in extras or TESTS:
            problems = prepare(uv, python, extra, wheel)
            print("".join(f"lowest: {problem}\n" for problem in problems), end="", file=sys.stderr)
            if run(extra) or problems:
                failed.append(extra)
    if failed:
        print(f"lowest: the tests failed with the lowest versions of: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def run(extra: str) -> int:
    """The exit code of the tests of an extra, which run in its environment."""
    files = [str(path.relative_to(ROOT)) for named in TESTS[extra] for path in sorted(ROOT.glob(named))]
    options = ["-q", "-p", "no:cacheprovider", "-n", os.environ.get("N", "auto"), "--dist=loadfile"]
    options += [
        "--hypothesis-profile=few",
        "--override-ini=filterwarnings=default",
        "-m",
        MARKS.get(extra, OTHERS),
    ]
    command = [str(VENVS / extra / "bin" / "python"), "-m", "pytest", *options, *files]
    environment = {name: value for name, value in os.environ.items() if name not in {"CI", "PYTHONPATH"}}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
