"""The first use of a parameter type, by many threads at once."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import dataclasses, sys, threading
from planning.tools import Tool, Toolbox

sys.setswitchinterval(1e-6)

def several(rounds):
    for number in range(rounds):
        inner = dataclasses.make_dataclass(f"Inner{number}", [("title", str)])
        outer = dataclasses.make_dataclass(f"Outer{number}", [("inner", inner), ("more", list[inner])])
        toolbox = Toolbox([Tool("tool", "A tool.", lambda params: "ok", parameters=outer)])
        start, results = threading.Barrier(8), []

        def call():
            start.wait()
            text = '{"inner": {"title": "a"}, "more": [{"title": "b"}]}'
            results.append(toolbox.call("tool", text).message)

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == ["ok"] * 8, results

several(150)
print("done")
"""


def test_threads_may_meet_at_the_first_call_of_a_tool() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")


EVERY_KIND = """
import dataclasses, enum, sys, threading, typing
import attrs, typing_extensions
from planning.errors import ToolValidationError
from planning.tools.decode import decode

sys.setswitchinterval(1e-6)
T = typing.TypeVar("T")

def same(value):
    return value

def several(rounds):
    for number in range(rounds):
        level = enum.IntEnum(f"Level{number}", {"LOW": 1})
        inner = dataclasses.make_dataclass(f"Inner{number}", [("title", str), ("level", level, level.LOW)])
        box = dataclasses.make_dataclass(
            f"Box{number}", [("content", T)], bases=(typing.Generic[T],)
        ) if sys.version_info >= (3, 12) else inner
        boxed = box[inner] if box is not inner else inner
        shown = attrs.make_class(f"Shown{number}", {"a": attrs.field(type=inner, converter=same)})
        fixed = typing_extensions.TypedDict(f"Fixed{number}", {"a": typing_extensions.ReadOnly[inner]})
        odd = typing_extensions.TypedDict(f"Odd{number}", {"a-b": typing.Dict[level, inner]})
        kind = dataclasses.make_dataclass(
            f"Kind{number}", [("one", shown), ("two", fixed), ("three", odd), ("four", typing.List[boxed])]
        )
        good = {"title": "a"}
        four = {"content": good} if box is not inner else good
        sent = {"one": {"a": good}, "two": {"a": good}, "three": {"a-b": {"1": good}}, "four": [four]}
        start, results = threading.Barrier(8), []

        def call():
            start.wait()
            value = decode(kind, sent)
            try:
                decode(kind, {**sent, "one": {"a": {"title": "a", "level": 7}}})
            except ToolValidationError as error:
                results.append((value.three["a-b"][level.LOW].title, str(error)))

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        told = ("a", "one.a.level: a value of type int is unknown; send one of 1")
        assert results == [told] * 8, results

several(40)
print("done")
"""


def test_threads_may_meet_at_the_first_call_whatever_the_type() -> None:
    run = subprocess.run([sys.executable, "-c", EVERY_KIND], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")
