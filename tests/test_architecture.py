"""The house's rules that no other tool checks."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
import zlib
from importlib.metadata import files, requires
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ["session", "planning"]
EXTRAS = [
    "langgraph", "langchain_core", "sqlglot", "duckdb", "openai", "anthropic", "pydantic", "rich", "typer",
    "click", "mcp", "mcp_types", "anyio", "starlette", "uvicorn",
]  # fmt: skip
HEAVY = ["pydantic_core", "jsonschema_rs", "asyncio", "hypothesis", "syrupy", *EXTRAS]


def modules(package: str) -> list[Path]:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return sorted(Path(spec.origin).parent.rglob("*.py"))


def imported(module: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            found.add(str(node.module).partition(".")[0])
    return found


def test_the_session_imports_the_standard_library_and_attrs_alone() -> None:
    allowed = sys.stdlib_module_names | {"session", "attrs", "typing_extensions"}
    found = {name for module in modules("session") for name in imported(module)}
    assert found <= allowed | {"psycopg"}  # where .importlinter lets it, in the modules of one store


LIGHT: dict[str, list[str]] = {
    "import planning": ["session", "attrs", *HEAVY],
    "import planning; used = [getattr(planning, name) for name in planning.__all__]": HEAVY,
    "import session.stores": ["psycopg"],
    "from planning.agent import SqlDatabase, decide_next_action, execute_tools_node": EXTRAS,
    "from planning.integrations import openai, anthropic": ["openai", "anthropic", "pydantic", "hypothesis"],
}


JUDGES = ["policy.decide", "policy.evidence", "policy.policy", "suite.policy_calls"]
LIGHT[
    """
from planning import PlanningToolsSection, Toolbox
from session import Session

session = Session()
section = PlanningToolsSection(session=session)
toolbox = Toolbox(section.tools(), session=session)
toolbox.call("planning_setup_plan", {"objective": "Ship", "initial_steps": [{"title": "Build"}]})
toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done"})
assert section.body() != section.reminder() and section.may_finish().ok
"""
] = [f"planning.{name}" for name in JUDGES]  # nothing that judges a policy, without one
LIGHT[
    """
from contextlib import redirect_stdout, suppress
from planning.cli import main
sys.argv = ["planning", "--help"]
with redirect_stdout(None), suppress(SystemExit):
    main()
"""
] = [name for name in [*HEAVY, "session", "planning.tools"] if name not in {"rich", "typer"}]


@pytest.mark.parametrize("program", LIGHT)
def test_a_program_loads_nothing_that_it_does_not_need(program: str) -> None:
    program = f"import sys\n{program}\nprint([name for name in {LIGHT[program]} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


def test_the_wheel_holds_both_packages_with_their_types() -> None:
    installed = {str(path) for path in files("session-planning") or ()}
    if any(path.endswith(".pth") for path in installed):
        pytest.skip("installed in place: there is no wheel to look into")
    assert {"session/py.typed", "planning/py.typed"} <= installed
    for package in PACKAGES:
        inside = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / package).rglob("*.py")}
        assert inside <= installed
    assert not any("examples" in Path(path).parts for path in installed)


def test_a_wheel_is_under_a_megabyte_and_for_linux_alone() -> None:
    packed = [path for path in (ROOT / "src").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert 100_000 < sum(len(zlib.compress(path.read_bytes())) for path in packed) < 1_000_000
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    systems = [each for each in classifiers if each.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]


LONGER = {"session/session.py": "one class, whose docstrings are the reference of a session"}


def test_no_module_is_longer_than_600_lines_and_each_says_what_it_is() -> None:
    texts = {
        "/".join(module.parts[-2:]): module.read_text() for package in PACKAGES for module in modules(package)
    }
    assert {name for name, text in texts.items() if len(text.splitlines()) > 600} == LONGER.keys()
    assert [name for name, text in texts.items() if not ast.get_docstring(ast.parse(text))] == []


def test_no_module_imports_a_name_from_a_package_that_it_is_in() -> None:
    """Such a package imports the module: a cycle that import-linter's contract does not see."""
    found: dict[bool, list[str]] = {True: [], False: []}
    every = [each for package in PACKAGES for each in modules(package) if each.name != "__main__.py"]
    root = every[0].parent.parent
    for module in every:
        inside = module.relative_to(root).parts[:-1]
        around = {".".join(inside[:depth]) for depth in range(1, len(inside) + 1)}
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module in around:
                home = root.joinpath(*node.module.split("."))
                named = [home / alias.name for alias in node.names]
                are_modules = all(path.is_dir() or path.with_suffix(".py").exists() for path in named)
                found[are_modules].append(f"{module}:{node.lineno}")
    assert found[False] == []
    assert found[True] != []


def test_the_core_has_four_requirements() -> None:
    core = [need for need in requires("session-planning") or () if "extra ==" not in need]
    names = sorted(need.partition(">")[0] for need in core)
    assert names == ["attrs", "jsonschema-rs", "pydantic", "typing-extensions"]


def test_tests_mirror_the_rooms() -> None:
    rooms = {path.parent.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*.py")}
    assert {str(room) for room in rooms if not (ROOT / "tests" / room).is_dir()} == set()
