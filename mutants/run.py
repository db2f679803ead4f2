"""Mutation testing: change the code in one place, and see whether a test notices.

A sample of each room's mutants is tried. The same seed chooses the same places before and after a change
elsewhere. What no test notices is shown to the type checker, as ``make check`` does.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import time
import tomllib
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import NamedTemporaryFile

from places import Mutant, mutants_of
from trial import Reach, tried

ROOT = Path(__file__).parent.parent
HERE = Path(__file__).parent
_ANY_CASE = re.compile(
    "SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|BEGIN|COMMIT|ROLLBACK|PRAGMA|VACUUM|WHERE|CAST|SET LOCAL"
    "|_columns:|utf-8|version, text"
)
# Imported once, for all rooms; of the project nothing, as each room's process imports its own.
_SHARED = (
    *("pytest", "hypothesis.stateful", "syrupy", "sybil", "attrs", "pydantic", "jsonschema_rs", "stamina"),
    *("jsonschema", "sqlite3", "asyncio", "coverage"),
)


def sample(sources: list[Path], size: int, seed: str) -> list[Mutant]:
    """So many of the mutants of some files (0: all), chosen by a seed and not by their place."""
    every = [mutant for path in sources for mutant in mutants_of(path, ROOT / "src")]
    chosen = sorted(every, key=lambda mutant: hashlib.sha256(f"{seed}{mutant.key}".encode()).digest())
    return chosen[:size] if size else chosen


def equivalent() -> set[tuple[str, str, str]]:
    """Place, lines before and after of what no test can notice; prints the entries whose code is gone."""
    known = set()
    for each in tomllib.loads((HERE / "equivalent.toml").read_text())["equivalent"]:
        known.add((each["place"], each["before"], each["after"]))
        path = ROOT / "src" / each["place"].partition(":")[0].replace(".", "/")
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        text = path.read_text() if path.exists() else ""
        is_there = all(f" {name}" in text for name in each["place"].partition(":")[2].split("."))
        if not (is_there and set(each["before"].split("\n")) <= {*map(str.strip, text.splitlines())}):
            print(f"equivalent.toml is stale, the code has changed: {each['place']}: {each['before']}")
    return known


def is_same(before: str, after: str) -> bool:
    """Whether lines differ in what only time tells, or nothing: a cache, the case of SQL, a type variable."""
    is_case = before.lower() == after.lower() and _ANY_CASE.search(before) is not None
    is_cache = before.startswith(("@cache", "@lru_cache(")) and "None" not in after
    return is_case or is_cache or " = TypeVar(" in before


class Types:
    """The type checker of ``make check``. What it says of odd code is not counted."""

    _ODD = re.compile(r"\[(unreachable|redundant-expr|truthy-bool|possibly-undefined|unused-ignore)\]$")

    def __init__(self, folder: Path) -> None:
        self._command = [sys.executable, "-m", "mypy", f"--cache-dir={folder}", "--no-error-summary"]
        self._errors_of = cache(self._errors)

    def refuse(self, mutant: Mutant) -> bool:
        """Whether a mutant has an error of types that its module has not."""
        checked = mutant.path if mutant.is_in_function else ROOT / "src"  # others use what it declares
        with NamedTemporaryFile("w", suffix=".py") as changed:
            # Not of the length of the file: mypy would take it for the file that it has in its cache.
            changed.write(f"{mutant.source()}#{' ' * 9_999}")
            changed.flush()
            shadow = "--shadow-file", str(mutant.path), changed.name
            return not self._errors(checked, *shadow) <= self._errors_of(checked)

    def _errors(self, path: Path, *shadow: str) -> set[str]:
        done = subprocess.run(  # noqa: S603 - mypy, with files of this project
            [*self._command, *shadow, str(path)], capture_output=True, text=True, check=False
        )
        if done.returncode not in {0, 1}:
            raise SystemExit(f"{path} cannot be checked: {done.stdout}{done.stderr}")
        errors = [line for line in done.stdout.splitlines() if ": error: " in line]
        return {re.sub(r":\d+", "", line) for line in errors if not self._ODD.search(line)}


def report(
    room: str,
    results: list[tuple[Mutant, str]],
    reach: Reach,
    known: set[tuple[str, str, str]],
    types: Types,
) -> Counter[str]:
    """Print each mutant that survived and is not known to be equivalent, and count what became of all."""
    counts = Counter(outcome for _, outcome in results)
    for mutant, outcome in sorted(results, key=lambda result: (result[0].path, result[0].lines)):
        if outcome != "survived":
            continue
        before, after = mutant.diff()
        place = f"{mutant.module}:{mutant.scope}"
        if (place, before, after) in known or is_same(before, after):
            counts["equivalent"] += 1
            continue
        if types.refuse(mutant):
            counts["types"] += 1
            continue
        ran = f"{len(reach.near(mutant))} tests run this"
        if reach.runs_at_import(mutant):
            ran += ", and it runs at import"
        print(f"\n{mutant.path.relative_to(ROOT)}:{mutant.lines[0]} in {place}: {ran}")
        print(*(f"  - {line}" for line in before.split("\n")), sep="\n")
        print(*(f"  + {line}" for line in after.split("\n")), sep="\n")
    print(f"\n== {room}: {_figures(counts)}", flush=True)
    return counts


def _figures(counts: Counter[str]) -> str:
    noticed, same = counts["killed"] + counts["timeout"] + counts["types"], counts["equivalent"]
    survived = counts["survived"] - same - counts["types"]
    return (
        f"{noticed + survived + same:5} mutants {noticed:5} noticed "
        f"({counts['timeout']} by time, {counts['types']} by types) "
        f"{survived:4} not {same:4} equivalent {100 * noticed / max(noticed + survived, 1):6.1f} %"
    )


def main() -> int:
    """Try a sample of each room, and print a table."""
    parser = argparse.ArgumentParser(description="Mutation testing.")
    parser.add_argument("rooms", nargs="*", help="of rooms.toml; all of them unless named")
    parser.add_argument("--size", type=int, default=120, help="mutants of each room; 0 tries all")
    parser.add_argument("--seed", default=None, help="chooses the mutants; another one each day unless given")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="children at a time")
    parser.add_argument("--cache", type=Path, required=True, help="a folder for what the tests reach")
    chosen = parser.parse_args()
    rooms = tomllib.loads((HERE / "rooms.toml").read_text())
    if unknown := set(chosen.rooms) - set(rooms):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the rooms are {', '.join(rooms)}")
    seed = chosen.seed or time.strftime("%Y-%m-%d")
    os.chdir(ROOT)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # plugins of other libraries take seconds to import
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(chosen.cache / "bytecode")
    sys.path[:0] = [str(ROOT / "src")]
    for name in _SHARED:
        import_module(name)
    known, table, types = equivalent(), {}, Types(chosen.cache / "types")
    for name in chosen.rooms or rooms:
        room, began = rooms[name], time.monotonic()
        sources = [path for each in room["source"] for path in _modules(ROOT / each)]
        tests = [str(path.relative_to(ROOT)) for each in room["tests"] for path in sorted(ROOT.glob(each))]
        mutants = sample(sources, chosen.size, seed)
        results, reach = tried(mutants, sources, tests, jobs=chosen.jobs, cache=chosen.cache)
        if reach.failed:
            print(f"{name}: not used, as they fail without a mutant: {', '.join(reach.failed)}")
        table[name] = report(name, results, reach, known, types), time.monotonic() - began
    print(f"\nseed {seed}")
    for name, (counts, seconds) in table.items():
        print(f"{name:14} {_figures(counts)}   of {rooms[name]['least']} % asked   {seconds:4.0f} s")
    return 0


def _modules(path: Path) -> list[Path]:
    if not (path.parent if "*" in path.name else path).exists():
        raise SystemExit(f"rooms.toml is stale: there is no {path.relative_to(ROOT)}")
    if "*" in path.name:
        return sorted(path.parent.glob(path.name))
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


if __name__ == "__main__":
    sys.exit(main())
