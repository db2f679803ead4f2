"""What each judge makes of broken calls: refused, every fault named, the right word suggested, how long."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.harness import OURS, Section, table
from benchmarks.proof.broken import TOOL, Broken, break_calls, loosen_calls, read_calls
from benchmarks.proof.judges import FINDERS, JUDGES, SCHEMA, Judge

__all__ = ["measure"]

SHORTENED = 30
"""A message may quote so many characters of a longer name."""
READ = """\
{:,} calls of the Berkeley Function Calling Leaderboard that have one right answer and flat arguments.
Accepted unchanged: {}. {} are refused rightly, because their own schema does not allow them (an "N/A" that
is not in the list, a required argument that is missing). The others that jsonschema refuses send null for
an optional argument."""
BREAKING = """\
The benchmark then breaks each call that matches its own schema, with a fixed seed: it misspells a name or a
value of a list (doubles, drops or swaps a letter), omits a required argument, or replaces a string by an
object or a number by a word. "All named" counts the refusals that name every wrong argument. "Right word"
counts the mistakes for which the refusal gives the right name or value after the wrong one. The characters
are those of a mean refusal. For pydantic the refusal is `str(error)` without its links, from a model whose
optional fields may be null; for jsonschema it is the messages of all errors, with their places. LangGraph's
answer to an unknown tool lists every tool of the question."""
LOOSE = "Accepted arguments that are in another form than the schema's, with only one possible meaning:"


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

    def row(self) -> list[str | int]:
        """The figures of the table."""
        right = f"{self.suggested:,} of {self.faults:,}" if self.faults else ""
        return [self.calls, self.refused, self.named, right, round(self.characters / max(self.refused, 1))]


def measure(_rounds: int) -> Section:
    """Show every call to every judge, as it is and broken."""
    calls = read_calls()
    refused = {
        name: {call.call_id for call in calls if judge(call, call.tool, call.arguments) is not None}
        for name, judge in JUDGES.items()
    }
    sound = [call for call in calls if call.call_id not in refused[SCHEMA]]
    accepted = ", ".join(f"{name} {len(calls) - len(found):,}" for name, found in refused.items())
    text = READ.format(len(calls), accepted, len(refused[OURS] & refused[SCHEMA]))
    broken = {
        way: {name: _judged(judge, found) for name, judge in (FINDERS if way == TOOL else JUDGES).items()}
        for way, found in break_calls(sound).items()
    }
    loose = [
        [what, *(f"{_accepted(judge, found):,} of {len(found):,}" for judge in JUDGES.values())]
        for what, found in loosen_calls(sound).items()
    ]
    head = ["broken by", "judge", "calls", "refused", "all named", "right word", "characters"]
    rows = [[way, name, *each.row()] for way, by_judge in broken.items() for name, each in by_judge.items()]
    data: dict[str, Any] = {
        way: {name: asdict(each) for name, each in by_judge.items()} for way, by_judge in broken.items()
    }
    packages = ("session-planning", "pydantic", "jsonschema", "langgraph", "bfcl-eval")
    blocks = [text, BREAKING, table(head, rows), LOOSE, table(["sent", *JUDGES], loose)]
    return Section("Broken calls", packages, blocks, data=data)


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
