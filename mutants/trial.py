"""Trying mutants: which tests reach what, and whether one of them notices a change.

The tests of a room are collected once, in a process of its own. Each mutant is tried in a fork of that: the
code of the changed function is replaced in place, and the tests that reach it run, the fastest first, until
one fails. What runs while the tests are imported is tried in a process that imports the changed module from
memory.
"""

from __future__ import annotations

import _thread
import gc
import hashlib
import json
import os
import signal
import sys
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import _lru_cache_wrapper
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from inspect import CO_OPTIMIZED
from itertools import accumulate, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FunctionType, ModuleType
from typing import Any

import attrs
from places import Mutant

__all__ = ["Reach", "tried"]

_ARGUMENTS = (
    *("-q", "-x", "-s", "--snapshot-warn-unused", "--hypothesis-profile=mutants"),
    *("-m", "not slow and not interrupting and not browser"),
    *("-o", "faulthandler_timeout=60"),  # a test that hangs notices
    *("-p", "no:cacheprovider", "-p", "syrupy", "-p", "_hypothesis_pytestplugin"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning", "-W", "ignore::DeprecationWarning"),
)
_NOTICED, _UNNOTICED, _TO_IMPORT = 1, 0, 3
_NO_TESTS, _MOST_MEMORY, _FIRST_FILES = 5, 6 * 2**30, 3
_MOST_IMPORTED = 15.0  # seconds of tests with a module that is changed at import
_LONGEST = 20  # lines of an expression
_LATER = 3  # times as long on the second try of what is late: the machine may have been busy
TABLES = ["tests/test_data_classes.py", "tests/test_public_api.py"]
"""Tests of what is declared anywhere: they look at what the import has made."""
Job = tuple[Callable[[], int], float]
"""What a child does, and the seconds it may take."""


@attrs.define
class Reach:
    """Which tests reach which lines, how long each takes, and what runs when they are imported."""

    tests: dict[str, dict[int, set[str]]] = attrs.field(factory=lambda: defaultdict(lambda: defaultdict(set)))
    seconds: dict[str, float] = attrs.field(factory=dict)
    failed: list[str] = attrs.field(factory=list)
    imported: dict[str, set[int]] = attrs.field(factory=dict)

    def near(self, mutant: Mutant) -> set[str]:
        """The tests that run the changed lines."""
        lines, (first, last) = self.tests[str(mutant.path)], mutant.lines
        found = set[str]().union(*(lines[line] for line in range(first, last + 1) if line in lines))
        # Not each line of an expression over several is recorded: the one before it is.
        before = (line for line in range(first - 1, first - _LONGEST, -1) if line in lines)
        return found or (lines[next(before, first)] if mutant.is_in_function else set())

    def runs_at_import(self, mutant: Mutant) -> bool:
        """Whether a change may be noticed only where the module is imported with it."""
        first, last = mutant.lines
        return not mutant.is_in_function or any(
            first <= line <= last for line in self.imported.get(str(mutant.path), ())
        )

    def fastest(self, tests: Iterable[str]) -> list[str]:
        """Those that pass without a mutant, the fastest first."""
        return sorted(set(tests) - set(self.failed), key=lambda test: (self.seconds[test], test))

    def add(self, found: dict[str, Any]) -> None:
        """Join what a file of tests reaches."""
        self.seconds |= found["seconds"]
        self.failed += found["failed"]
        for path, lines in found["lines"].items():
            for line, names in lines.items():
                self.tests[path][int(line)] |= set(names)


def tried(
    mutants: list[Mutant], sources: list[Path], tests: list[str], *, jobs: int, cache: Path
) -> tuple[list[tuple[Mutant, str]], Reach]:
    """The mutants, each with ``killed``, ``timeout`` or ``survived``; and what the tests reach."""
    tests = [*tests, *TABLES]
    with TemporaryDirectory() as rooms:
        found = Path(rooms, "found.json")
        room = _Room(mutants, sources, jobs=jobs, cache=cache, rooms=rooms, found=found)
        child = os.fork()
        if child == 0:
            os._exit(room.collected(tests))
        os.waitpid(child, 0)
        if not found.exists():
            raise SystemExit(f"the tests cannot be collected: pytest {' '.join(tests)}")
        state = json.loads(found.read_text())
        reach = Reach(seconds=state["seconds"], failed=state["failed"])
        reach.imported = {path: set(lines) for path, lines in state["imported"].items()}
        reach.add({"seconds": {}, "failed": [], "lines": state["lines"]})
        codes: dict[int, int | None] = dict(enumerate(state["codes"]))
        for step in (0, 1):
            left = [index for index, code in codes.items() if code == _TO_IMPORT]
            todo = {index: _importing(mutants[index], reach, tests, step, rooms) for index in left}
            for index, code in _in_children(todo, jobs):
                codes[index] = _TO_IMPORT if step == 0 and code in {_UNNOTICED, _NO_TESTS} else code
    print()
    words = {_UNNOTICED: "survived", _NO_TESTS: "survived", None: "timeout"}
    return [(mutant, words.get(codes[index], "killed")) for index, mutant in enumerate(mutants)], reach


# --- one collection, many forks


class _Room:
    """A plugin: collects the tests of a room, measures them, and tries each mutant in a fork."""

    def __init__(
        self, mutants: list[Mutant], sources: list[Path], *, jobs: int, cache: Path, rooms: str, found: Path
    ) -> None:
        self._mutants, self._sources, self._jobs = mutants, sources, jobs
        self._cache, self._rooms, self._found = cache, rooms, found
        self._said = os.dup(1)

    def collected(self, tests: list[str]) -> int:
        """Run pytest, whose loop is this one."""
        import pytest  # noqa: PLC0415 - in a child of its own
        from coverage import Coverage  # noqa: PLC0415 - in a child of its own

        _be_silent()
        self._imports = Coverage(
            data_file=None, config_file=False, include=[str(path) for path in self._sources]
        )
        self._imports.start()
        return int(pytest.main([*_ARGUMENTS, f"--basetemp={self._rooms}/0", *tests], plugins=[self]))

    def pytest_runtestloop(self, session: Any) -> bool:
        """Measure and try; no test runs in this process."""
        self._imports.stop()
        with warnings.catch_warnings(action="ignore"):
            imported = self._imports.get_data()
        if session.testsfailed:
            return True
        gc.unfreeze()
        if any(item.get_closest_marker("postgres") for item in session.items):
            from postgres_server import programs, shared_server  # noqa: PLC0415 - of the tests

            if programs() is not None:
                shared_server()  # started once, for all children
        reach = Reach(imported={path: set(imported.lines(path) or ()) for path in imported.measured_files()})
        for found in self._measured(session):
            reach.add(found)
        for name in {mutant.module for mutant in self._mutants} - set(sys.modules):
            with suppress(ImportError, SystemExit):  # of a library that is not here; of a command
                import_module(name)  # a test imports it only when it runs
        functions: dict[tuple[str, int, str], list[FunctionType]] = defaultdict(list)
        for each in gc.get_objects():
            if type(each) is FunctionType:
                functions[_place(each.__code__)].append(each)
        todo = {
            index: self._job(session, mutant, reach, functions) for index, mutant in enumerate(self._mutants)
        }
        codes = dict(_in_children(todo, self._jobs, self._said))
        for index, mutant in enumerate(self._mutants):
            if codes[index] == _UNNOTICED and reach.runs_at_import(mutant):
                codes[index] = _TO_IMPORT
        lines = {
            path: {line: sorted(names) for line, names in each.items()} for path, each in reach.tests.items()
        }
        state = {
            "codes": [codes[index] for index in range(len(self._mutants))],
            "seconds": reach.seconds,
            "failed": reach.failed,
            "imported": {path: sorted(each) for path, each in reach.imported.items()},
            "lines": lines,
        }
        self._found.write_text(json.dumps(state))
        return True

    def _measured(self, session: Any) -> Iterator[dict[str, Any]]:
        """What each file of tests reaches: from the cache, or from a run of those that changed."""
        helpers = [path for path in sorted(Path("tests").rglob("*.py")) if not path.name.startswith("test_")]
        common = _digest([*self._sources, *helpers, Path("mutants/trial.py")])
        stored: dict[str, Path] = {}
        for item in session.items:
            file = item.nodeid.partition("::")[0]
            if file not in stored:
                stored[file] = self._cache / f"{_digest([Path(file)], common)[:24]}.json"
        todo: dict[int, Job] = {}
        for number, file in enumerate(file for file, path in stored.items() if not path.exists()):
            items = [item for item in session.items if item.nodeid.partition("::")[0] == file]
            todo[number] = lambda items=items, file=file: self._measure(session, items, stored[file]), 900.0
        for _ in _in_children(todo, self._jobs, self._said, ":"):
            pass
        for file, path in stored.items():
            if not path.exists():
                os.write(self._said, f"\n{file} cannot be measured\n".encode())
                os._exit(2)
            yield json.loads(path.read_text())

    def _measure(self, session: Any, items: list[Any], stored: Path) -> int:
        from coverage import Coverage  # noqa: PLC0415 - in a child of its own

        coverage = Coverage(data_file=None, config_file=False, include=[str(path) for path in self._sources])
        recorder = _Recorder(coverage)
        session.config.pluginmanager.register(recorder)
        coverage.start()
        _thread.start_new_thread = _traced(_thread.start_new_thread)
        _run(session, items, f"{self._rooms}/{stored.stem}", until_one_fails=False)
        coverage.stop()
        warnings.simplefilter("ignore")  # a file of tests need not reach the room
        data = coverage.get_data()
        lines = {
            path: {line: [test for test in tests if test] for line, tests in each.items()}
            for path in data.measured_files()
            for each in [data.contexts_by_lineno(path)]
        }
        found = {"lines": lines, "seconds": recorder.seconds, "failed": recorder.failed}
        stored.with_suffix(".part").write_text(json.dumps(found))
        stored.with_suffix(".part").replace(stored)
        return 0

    def _job(
        self,
        session: Any,
        mutant: Mutant,
        reach: Reach,
        functions: dict[tuple[str, int, str], list[FunctionType]],
    ) -> Job:
        order = reach.fastest(reach.near(mutant))
        chosen = {test: place for place, test in enumerate(order)}

        def run() -> int:
            if not (mutant.is_in_function and _is_replaced(mutant, functions)):
                return _TO_IMPORT
            _forget()
            items = sorted(
                (item for item in session.items if item.nodeid in chosen),
                key=lambda item: chosen[item.nodeid],
            )
            return _run(session, items, f"{self._rooms}/{mutant.key[:16]}", until_one_fails=True)

        return run, 20 + 3 * sum(reach.seconds[test] for test in order)


def _traced(start: Callable[..., int]) -> Callable[..., int]:
    """Follow threads that are started without ``threading``, too."""

    def start_traced(function: Callable[..., object], *arguments: Any) -> int:
        def run(*given: Any, **named: Any) -> None:
            sys.settrace(threading.gettrace())
            function(*given, **named)

        return start(run, *arguments)

    return start_traced


class _Recorder:
    """Follows pytest and coverage: a context for each test."""

    def __init__(self, coverage: Any) -> None:
        self._coverage = coverage
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        _forget()
        self._coverage.switch_context(nodeid)
        self.seconds[nodeid] = 0.0

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.outcome == "failed":
            self.failed.append(report.nodeid)


def _run(session: Any, items: list[Any], room: str, *, until_one_fails: bool) -> int:
    """Run some of the collected tests, in this order, in this child."""
    _be_silent()
    factory = session.config._tmp_path_factory
    factory._basetemp, factory._given_basetemp = None, Path(room)
    for item, following in pairwise([*items, None]):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed and until_one_fails:
            session._setupstate.teardown_exact(None)
            break
    return _NOTICED if session.testsfailed else _UNNOTICED


def _forget() -> None:
    """Empty what functions of the project keep: a test reaches also what another one has had computed."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in {"planning", "session"}:
            for value in list(vars(module).values()):
                if isinstance(value, _lru_cache_wrapper):
                    value.cache_clear()


def _place(code: CodeType) -> tuple[str, int, str]:
    return code.co_filename, code.co_firstlineno, code.co_qualname


def _is_replaced(mutant: Mutant, functions: dict[tuple[str, int, str], list[FunctionType]]) -> bool:
    """Give the functions that the outermost changed one has made its mutated code, and those within it."""
    before = compile(mutant.path.read_text(), str(mutant.path), "exec", dont_inherit=True)
    after = compile(mutant.source(), str(mutant.path), "exec", dont_inherit=True)
    changed: list[tuple[CodeType, CodeType]] = []
    for name in mutant.scope.split("."):
        children = [each for each in before.co_consts if isinstance(each, CodeType)]
        mutated = [each for each in after.co_consts if isinstance(each, CodeType)]
        if len(children) != len(mutated):
            return False
        for old, new in zip(children, mutated, strict=True):
            if (
                old.co_name == name
                and old.co_firstlineno <= mutant.lines[0] <= max(_all_lines(old), default=0) + 1
            ):
                before, after = old, new
                break
        else:
            return False
        if before.co_flags & CO_OPTIMIZED:
            changed.append((before, after))
    if not changed or any(old.co_freevars != new.co_freevars for old, new in changed):
        return False
    if _place(changed[0][0]) not in functions or changed[0][0] == changed[0][1]:
        return False  # what differs is a default, which is no part of the code
    for old, new in changed:  # a function within one may have been made at import
        for function in functions.get(_place(old), ()):
            function.__code__ = new
    return True


def _all_lines(code: CodeType) -> Iterator[int]:
    yield from (line for _, _, line in code.co_lines() if line)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _all_lines(each)


# --- the changed module, imported


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


def _importing(mutant: Mutant, reach: Reach, tests: list[str], step: int, rooms: str) -> Job:
    """A run with the changed module: first of the nearest files, then of all that may notice."""
    near = reach.fastest(reach.near(mutant) or set[str]().union(*reach.tests[str(mutant.path)].values()))
    chosen = near
    if step == 0:
        files: dict[str, int] = defaultdict(int)
        for test in near:
            files[test.partition("::")[0]] += 1
        first = sorted(files, key=lambda file: -files[file])[:_FIRST_FILES]
        chosen = [test for test in near if test.partition("::")[0] in first]
        if mutant.scope:  # what a class or a function declares
            of_tables = {
                test
                for test in set(reach.seconds) - set(near)
                if test.partition("::")[0] in TABLES
                and mutant.module.startswith(test.partition("[")[2].rstrip("]") or " ")
            }
            chosen = [*reach.fastest(of_tables), *chosen]
    else:
        if not mutant.is_in_function:  # no test is recorded to reach what runs at import
            chosen = [*near, *reach.fastest(set(reach.seconds) - set(near))]
        ends = accumulate(map(reach.seconds.__getitem__, chosen))
        chosen = [test for test, end in zip(chosen, ends, strict=True) if end < _MOST_IMPORTED]

    def run() -> int:
        import pytest  # noqa: PLC0415 - in a child of its own

        _be_silent()
        sys.meta_path.insert(0, _Mutated(mutant))
        files = sorted({test.partition("::")[0] for test in chosen}) or tests
        room = f"--basetemp={rooms}/{mutant.key[:16]}-{step}"
        return int(pytest.main([*_ARGUMENTS, room, *files], plugins=[_Only(chosen, reach.seconds)]))

    return run, 40 + 3 * sum(reach.seconds[test] for test in chosen)


# --- children


def _be_silent() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)


def _in_children(
    jobs: dict[int, Job], most: int, said: int = 1, sign: str = ""
) -> Iterator[tuple[int, int | None]]:
    """Each job's exit code, as they end; none where the time was over twice."""
    running: dict[int, tuple[int, float]] = {}
    waiting, late = sorted(jobs, reverse=True), set[int]()
    while waiting or running:
        while waiting and len(running) < most:
            number = waiting.pop()
            child = os.fork()
            if child == 0:
                os.setpgid(0, 0)
                _in_child(jobs[number][0])
            seconds = jobs[number][1] * (_LATER if number in late else 1)
            running[child] = number, time.monotonic() + seconds
        time.sleep(0.005)
        for child, (number, deadline) in list(running.items()):
            done, status = os.waitpid(child, os.WNOHANG)
            is_late = not done and time.monotonic() > deadline
            if not (done or is_late):
                continue
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # what its tests have left, too
            if is_late:
                os.waitpid(child, 0)
            del running[child]
            if is_late and number not in late:
                late.add(number)
                waiting.append(number)
                continue
            code = None if is_late else os.waitstatus_to_exitcode(status)
            survived = code in {_UNNOTICED, _NO_TESTS}
            os.write(said, (sign or {_TO_IMPORT: "i"}.get(code or 0, "S" if survived else ".")).encode())
            yield number, code


def _in_child(job: Callable[[], int]) -> None:
    import resource  # noqa: PLC0415 - in a child of its own

    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    code = _NOTICED
    try:
        code = job()
    finally:
        os._exit(code)


def _digest(paths: Iterable[Path], more: str = "") -> str:
    digest = hashlib.sha256(more.encode())
    for path in paths:
        digest.update(f"{path}\0".encode() + path.read_bytes())
    return digest.hexdigest()
