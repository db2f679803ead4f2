"""Mutation testing: change the code in one place, and see whether a test notices.

A sample of each area's mutants is tried, each in a forked child that imports the changed module from
memory and runs only the tests that reach the changed lines, the fastest first. The same seed chooses the
same places before and after a change elsewhere.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, ModuleType
from typing import Any

import attrs
from places import Mutant, mutants_of

ROOT = Path(__file__).parent.parent
HERE = Path(__file__).parent
# Imported once, for all children; of the project nothing, as each child imports its own.
_SHARED = (
    *("pytest", "hypothesis.stateful", "syrupy", "sybil", "attrs", "pydantic", "jsonschema_rs", "stamina"),
    *("jsonschema", "sqlite3", "asyncio"),
)
_ARGUMENTS = (
    *("-q", "-x", "--snapshot-warn-unused", "--hypothesis-profile=mutants"),
    *("-p", "no:cacheprovider", "-p", "syrupy", "-p", "_hypothesis_pytestplugin"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning", "-W", "ignore::DeprecationWarning"),
)
_SURVIVED, _NO_TESTS, _MOST_MEMORY = 0, 5, 4 * 2**30


@attrs.define
class Reach:
    """Which tests reach which lines, and how long each takes."""

    tests: dict[str, dict[int, set[str]]] = attrs.field(factory=lambda: defaultdict(lambda: defaultdict(set)))
    seconds: dict[str, float] = attrs.field(factory=dict)
    failed: list[str] = attrs.field(factory=list)

    def near(self, mutant: Mutant) -> set[str]:
        """The tests that run the changed lines."""
        lines, (first, last) = self.tests[str(mutant.path)], mutant.lines
        return set[str]().union(*(lines[line] for line in range(first, last + 1) if line in lines))

    def of(self, mutant: Mutant) -> list[str]:
        """The tests that may notice a mutant, the fastest first.

        These are all tests for code that runs at import, as no test is recorded to reach that: first those
        that call anything of the file.
        """
        near = found = self.near(mutant)
        if not (mutant.is_in_function and near):
            near, found = set[str]().union(*self.tests[str(mutant.path)].values()), set(self.seconds)
        return sorted(found - set(self.failed), key=lambda test: (test not in near, self.seconds[test]))


class _Mutated(MetaPathFinder, SourceFileLoader):
    """Finds and loads one module from its mutated source."""

    def __init__(self, mutant: Mutant) -> None:
        super().__init__(mutant.module, str(mutant.path))
        self._source = mutant.source()

    def find_spec(
        self,
        fullname: str,
        _path: Sequence[str] | None,
        _target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        return spec_from_file_location(fullname, self.path, loader=self) if fullname == self.name else None

    def get_code(self, _fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)


class _Only:
    """Lets pytest run some tests, in a given order. A test that was unknown before runs, too."""

    def __init__(self, chosen: Sequence[str], known: dict[str, float]) -> None:
        self._order = {test: place for place, test in enumerate(chosen)}
        self._known = known

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if item.nodeid in self._order or item.nodeid not in self._known]
        items.sort(key=lambda item: self._order.get(item.nodeid, -1))


class _Recorder:
    """Follows pytest and coverage: a context for each test."""

    def __init__(self, coverage: Any) -> None:
        self._coverage = coverage
        self.reach = Reach()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._coverage.switch_context(nodeid)
        self.reach.seconds[nodeid] = 0.0

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.reach.seconds[report.nodeid] += report.duration
        if report.outcome != "passed":
            self.reach.failed.append(report.nodeid)


def measured(sources: list[Path], tests: list[str], cache: Path) -> Reach:
    """What the tests reach, from a run of all of them in a child, or from the last one of the same files."""
    read = [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "tests").rglob("*.json")]
    digest = hashlib.sha256("\0".join([*tests, *map(str, sources)]).encode())
    for path in sorted(read):
        digest.update(path.read_bytes())
    stored = cache / f"{digest.hexdigest()[:16]}.json"
    if not stored.exists():
        child = os.fork()
        if child == 0:
            os._exit(_measure(sources, tests, stored))
        os.waitpid(child, 0)
    reach = Reach(**{key: value for key, value in json.loads(stored.read_text()).items() if key != "tests"})
    for path, lines in json.loads(stored.read_text())["tests"].items():
        for line, names in lines.items():
            reach.tests[path][int(line)] = set(names)
    return reach


def _measure(sources: list[Path], tests: list[str], stored: Path) -> int:
    import pytest  # noqa: PLC0415 - in a child of its own
    from coverage import Coverage  # noqa: PLC0415 - in a child of its own

    coverage = Coverage(data_file=None, config_file=False, include=[str(path) for path in sources])
    recorder = _Recorder(coverage)
    coverage.start()
    code = pytest.main([*[each for each in _ARGUMENTS if each != "-x"], *tests], plugins=[recorder])
    coverage.stop()
    data, reach = coverage.get_data(), recorder.reach
    named = {
        path: {line: names for line, tests in lines.items() if (names := [test for test in tests if test])}
        for path in data.measured_files()
        for lines in [data.contexts_by_lineno(path)]
    }
    stored.write_text(json.dumps({"tests": named, "seconds": reach.seconds, "failed": reach.failed}))
    return int(code)


def _try(mutant: Mutant, tests: list[str], known: dict[str, float], room: str) -> int:
    """Run the tests with the mutant in place, in a child of its own."""
    import resource  # noqa: PLC0415 - in a child of its own

    import pytest  # noqa: PLC0415 - in a child of its own

    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    sys.meta_path.insert(0, _Mutated(mutant))
    files = sorted({test.partition("::")[0] for test in tests})
    return int(pytest.main([*_ARGUMENTS, f"--basetemp={room}", *files], plugins=[_Only(tests, known)]))


def tried(mutants: list[Mutant], reach: Reach, jobs: int) -> list[tuple[Mutant, str]]:
    """The mutants, each with ``killed``, ``timeout`` or ``survived``."""
    running: dict[int, tuple[Mutant, float]] = {}
    results: list[tuple[Mutant, str]] = []
    waiting = mutants[::-1]
    with TemporaryDirectory() as rooms:
        while waiting or running:
            while waiting and len(running) < jobs:
                mutant = waiting.pop()
                tests = reach.of(mutant)
                child = os.fork()
                if child == 0:
                    os.setpgid(0, 0)
                    os._exit(_try(mutant, tests, reach.seconds, f"{rooms}/{mutant.key[:16]}"))
                seconds = 30 + 6 * sum(reach.seconds.get(test, 0.0) for test in tests)
                running[child] = mutant, time.monotonic() + seconds
            time.sleep(0.02)
            for child, (mutant, deadline) in list(running.items()):
                done, status = os.waitpid(child, os.WNOHANG)
                is_late = not done and time.monotonic() > deadline
                if is_late:
                    os.killpg(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                if done or is_late:
                    del running[child]
                    code = os.waitstatus_to_exitcode(status)
                    outcome = "survived" if code in {_SURVIVED, _NO_TESTS} else "killed"
                    results.append((mutant, "timeout" if is_late else outcome))
                    print("." if is_late or outcome == "killed" else "S", end="", flush=True)
    print()
    return results


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
        lines = [line.strip() for line in path.read_text().splitlines()] if path.exists() else []
        if not set(each["before"].split("\n")) <= set(lines):
            print(f"equivalent.toml is stale, the code has changed: {each['place']}: {each['before']}")
    return known


def report(
    area: str, results: list[tuple[Mutant, str]], reach: Reach, known: set[tuple[str, str, str]]
) -> None:
    """Print the figures of an area, and each mutant that survived and is not known to be equivalent."""
    counts = Counter(outcome for _, outcome in results)
    for mutant, outcome in sorted(results, key=lambda result: (result[0].path, result[0].lines)):
        if outcome != "survived":
            continue
        before, after = mutant.diff()
        place = f"{mutant.module}:{mutant.scope}"
        if (place, before, after) in known:
            counts["equivalent"] += 1
            continue
        ran = f"{len(reach.near(mutant))} tests run this" if mutant.is_in_function else "this runs at import"
        print(f"\n{mutant.path.relative_to(ROOT)}:{mutant.lines[0]} in {place}: {ran}")
        print(*(f"  - {line}" for line in before.split("\n")), sep="\n")
        print(*(f"  + {line}" for line in after.split("\n")), sep="\n")
    noticed, counted = counts["killed"] + counts["timeout"], len(results) - counts["equivalent"]
    print(
        f"== {area}: {len(results)} mutants, {counts['killed']} killed, {counts['timeout']} timeouts, "
        f"{counts['survived'] - counts['equivalent']} survived, {counts['equivalent']} equivalent: "
        f"{100 * noticed / max(counted, 1):.1f} %",
        flush=True,
    )


def main() -> int:
    """Try a sample of each area."""
    parser = argparse.ArgumentParser(description="Mutation testing.")
    parser.add_argument("areas", nargs="*", help="of areas.toml; all of them unless named")
    parser.add_argument("--size", type=int, default=200, help="mutants of each area; 0 tries all")
    parser.add_argument("--seed", default="1", help="another one chooses other mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="children at a time")
    parser.add_argument("--cache", type=Path, required=True, help="a folder for what the tests reach")
    chosen = parser.parse_args()
    areas = tomllib.loads((HERE / "areas.toml").read_text())
    if unknown := set(chosen.areas) - set(areas):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the areas are {', '.join(areas)}")
    os.chdir(ROOT)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # plugins of other libraries take seconds to import
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(chosen.cache / "bytecode")
    sys.path[:0] = [str(ROOT / "src")]
    for name in _SHARED:
        import_module(name)
    known = equivalent()
    for area in chosen.areas or areas:
        sources = [path for each in areas[area]["source"] for path in _modules(ROOT / each)]
        tests = [
            str(path.relative_to(ROOT)) for each in areas[area]["tests"] for path in sorted(ROOT.glob(each))
        ]
        reach = measured(sources, tests, chosen.cache)
        if reach.failed:
            print(f"{area}: left out, as they do not pass by themselves: {', '.join(reach.failed)}")
        report(area, tried(sample(sources, chosen.size, chosen.seed), reach, chosen.jobs), reach, known)
    return 0


def _modules(path: Path) -> list[Path]:
    if not path.exists():
        raise SystemExit(f"areas.toml is stale: there is no {path.relative_to(ROOT)}")
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


if __name__ == "__main__":
    sys.exit(main())
