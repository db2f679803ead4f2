"""What each judge makes of broken calls: refused, every fault named, the right word suggested, how long."""

from __future__ import annotations

import re
from dataclasses import dataclass

from benchmarks.proof import OURS
from benchmarks.proof.calls import TOOL, Broken, break_calls, loosen_calls, read_calls
from benchmarks.proof.judges import FINDERS, JUDGES, SCHEMA, Judge

__all__ = ["RepairFigures", "Verdicts", "measure_repairs"]

SHORTENED = 30
"""A message may quote so many characters of a longer name."""


@dataclass(slots=True)
class Verdicts:
    """What one judge made of the calls that are broken in one way.

    Attributes:
        calls: How many there were.
        refused: How many were not accepted.
        named: How many refusals name every fault.
        faults: How many faults have a word that is right.
        suggested: For how many of them that word comes after the wrong one in the same problem.
        characters: Of all refusals.
    """

    calls: int = 0
    refused: int = 0
    named: int = 0
    faults: int = 0
    suggested: int = 0
    characters: int = 0


@dataclass(frozen=True, slots=True)
class RepairFigures:
    """What was counted.

    Attributes:
        calls: The calls of the benchmark that were read.
        accepted: By judge, how many of them are accepted as they are.
        sound: How many match their own schema by jsonschema: those are broken.
        both_refuse: How many our tools refuse and jsonschema too.
        broken: By way of breaking and judge.
        loose: By what has one meaning and judge: how many were accepted, of how many.
    """

    calls: int
    accepted: dict[str, int]
    sound: int
    both_refuse: int
    broken: dict[str, dict[str, Verdicts]]
    loose: dict[str, dict[str, tuple[int, int]]]


def measure_repairs() -> RepairFigures:
    """Have every judge look at every call, as it is and broken."""
    calls = read_calls()
    refused = {
        name: {call.call_id for call in calls if judge(call, call.tool, call.arguments) is not None}
        for name, judge in JUDGES.items()
    }
    sound = [call for call in calls if call.call_id not in refused[SCHEMA]]
    return RepairFigures(
        calls=len(calls),
        accepted={name: len(calls) - len(found) for name, found in refused.items()},
        sound=len(sound),
        both_refuse=len(refused[OURS] & refused[SCHEMA]),
        broken={
            way: {
                name: _judged(judge, broken) for name, judge in (FINDERS if way == TOOL else JUDGES).items()
            }
            for way, broken in break_calls(sound).items()
        },
        loose={
            what: {name: (_accepted(judge, loose), len(loose)) for name, judge in JUDGES.items()}
            for what, loose in loosen_calls(sound).items()
        },
    )


def _accepted(judge: Judge, loose: list[Broken]) -> int:
    return sum(judge(each.call, each.tool, each.arguments) is None for each in loose)


def _judged(judge: Judge, broken: list[Broken]) -> Verdicts:
    verdicts = Verdicts(calls=len(broken))
    for each in broken:
        verdicts.faults += sum(fault.right is not None for fault in each.faults)
        problems = judge(each.call, each.tool, each.arguments)
        if problems is None:
            continue
        verdicts.refused += 1
        verdicts.characters += len("\n".join(problems))
        verdicts.named += all(
            any(_has(text, _word(fault.named)) for text in problems) for fault in each.faults
        )
        verdicts.suggested += sum(
            any(_has(text, rf"{_word(fault.named)}.*{_word(fault.right)}") for text in problems)
            for fault in each.faults
            if fault.right is not None
        )
    return verdicts


def _has(text: str, pattern: str) -> bool:
    return re.search(pattern, text, re.DOTALL) is not None


def _word(word: str) -> str:
    """A pattern of the word as a whole, not within another; of a long one its start, as messages shorten."""
    end = r"(?!\w)" if len(word) <= SHORTENED else ""
    return rf"(?<!\w){re.escape(word[:SHORTENED])}{end}"
