"""The real calls of a public benchmark, and ways to break them.

The calls are those of the Berkeley Function Calling Leaderboard (the package ``bfcl-eval``, Apache-2.0). A
call is broken here by its schema alone, with a fixed seed, before anything judges it: no library's words or
rules decide what is broken, or how.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from random import Random
from typing import Any

__all__ = ["TOOL", "Broken", "Call", "Fault", "break_calls", "loosen_calls", "read_calls"]

DATASETS = ("simple_python", "multiple", "live_simple", "live_multiple")
TYPES = {"dict": "object", "float": "number", "tuple": "array"}
"""What the benchmark calls a type, and JSON Schema."""
SCALARS = ("string", "integer", "number", "boolean")


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it should be.

    Attributes:
        call_id: The benchmark's name of the question.
        tool: The function that is called.
        schemas: The parameters of every function that the question offers, as JSON Schema.
        arguments: The first accepted value of each argument.
    """

    call_id: str
    tool: str
    schemas: dict[str, dict[str, Any]]
    arguments: dict[str, Any]

    @property
    def schema(self) -> dict[str, Any]:
        """The parameters of the function that is called."""
        return self.schemas[self.tool]

    @property
    def required(self) -> set[str]:
        """The parameters that cannot be omitted."""
        return set(self.schema["required"])


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a call.

    Attributes:
        named: The word that a refusal must name: the parameter as it was sent, or the one that is missing.
        right: What should have been sent, where one word says it.
    """

    named: str
    right: str | None = None


@dataclass(frozen=True, slots=True)
class Broken:
    """A call with faults.

    Attributes:
        call: The call as it should be.
        tool: The name that is called.
        arguments: What is sent.
        faults: What is wrong; nothing for a call that has only one meaning, though not in its schema's form.
    """

    call: Call
    tool: str
    arguments: dict[str, Any]
    faults: tuple[Fault, ...]


def read_calls() -> list[Call]:
    """Read the calls that have one right answer and flat arguments: scalars, and arrays of scalars."""
    return [call for dataset in DATASETS for call in _read(dataset)]


def _read(dataset: str) -> Iterator[Call]:
    folder = files("bfcl_eval") / "data"
    name = f"BFCL_v4_{dataset}.json"
    asked = {line["id"]: line for line in _lines((folder / name).read_text(encoding="utf-8"))}
    for answer in _lines((folder / "possible_answer" / name).read_text(encoding="utf-8")):
        if len(answer["ground_truth"]) != 1:
            continue
        ((tool, accepted),) = answer["ground_truth"][0].items()
        functions = {each["name"]: each["parameters"] for each in asked[answer["id"]]["function"]}
        if all(_is_flat(each) for each in functions[tool]["properties"].values()):
            arguments = {key: _first(values) for key, values in accepted.items() if _first(values) != ""}
            schemas = {_name(name): _schema(parameters) for name, parameters in functions.items()}
            yield Call(answer["id"], _name(tool), schemas, arguments)


def _lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line]


def _first(values: list[Any]) -> Any:
    """The first value that the benchmark accepts; an empty text says that the argument may be omitted."""
    return next((value for value in values if value != ""), "")


def _name(name: str) -> str:
    """A function's name in the letters that providers accept, as the benchmark itself writes it for them."""
    return name.replace(".", "_")[:64]


def _is_flat(declared: Mapping[str, Any]) -> bool:
    kind = TYPES.get(declared["type"], declared["type"])
    if kind == "array":
        item = declared.get("items", {}).get("type")
        return TYPES.get(item, item) in SCALARS
    return kind in SCALARS


def _schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters as JSON Schema: a field that is not declared is refused, as strict providers ask."""
    properties = {name: _property(declared) for name, declared in parameters["properties"].items()}
    required = [name for name in parameters.get("required", ()) if name in properties]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _property(declared: Mapping[str, Any]) -> dict[str, Any]:
    kind = TYPES.get(declared["type"], declared["type"])
    made: dict[str, Any] = {"description": declared.get("description", "")}
    if kind != "any":
        made["type"] = kind
    if kind == "array" and "items" in declared:
        made["items"] = _property(declared["items"])
    if "enum" in declared and kind != "array":
        made["enum"] = declared["enum"]
    return made


def _misspell(word: str, random: Random) -> str:
    """Double a letter, drop one, or swap two neighbours."""
    place = random.randrange(len(word) - 1)
    way = random.randrange(3)
    if way == 1 and len(word) > 2:
        return word[:place] + word[place + 1 :]
    if way == 2 and word[place] != word[place + 1]:
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    return word[: place + 1] + word[place:]


Way = Callable[[Call, dict[str, Any], Random], Fault | None]
"""Breaks the arguments in one way, where they allow it."""


def _rename(call: Call, arguments: dict[str, Any], random: Random) -> Fault | None:
    """Misspell an argument's name."""
    names = [name for name in arguments if len(name) > 2]
    if not names:
        return None
    right = random.choice(names)
    wrong = _misspell(right, random)
    if wrong in call.schema["properties"]:
        return None
    arguments[wrong] = arguments.pop(right)
    return Fault(wrong, right)


def _omit(call: Call, arguments: dict[str, Any], random: Random) -> Fault | None:
    """Leave a required argument out."""
    names = [name for name in arguments if name in call.required]
    if not names:
        return None
    name = random.choice(names)
    del arguments[name]
    return Fault(name)


def _mistype(call: Call, arguments: dict[str, Any], random: Random) -> Fault | None:
    """Send a value of another type, which cannot be read as the right one."""
    if not arguments:
        return None
    name = random.choice(list(arguments))
    kind = call.schema["properties"][name]["type"]
    wrongs = {"string": {"value": arguments[name]}, "array": {"values": arguments[name]}}
    arguments[name] = wrongs.get(kind, "as appropriate")
    return Fault(name)


def _misname_value(call: Call, arguments: dict[str, Any], random: Random) -> Fault | None:
    """Misspell a value that is one of a list."""
    declared = call.schema["properties"]
    listed = [name for name in arguments if "enum" in declared[name]]
    words = [name for name in listed if isinstance(arguments[name], str) and len(arguments[name]) > 2]
    if not words:
        return None
    name = random.choice(words)
    right = arguments[name]
    arguments[name] = _misspell(right, random)
    return None if arguments[name] in declared[name]["enum"] else Fault(name, right)


FAULTS: dict[str, Way] = {
    "a misspelt argument": _rename,
    "a missing argument": _omit,
    "a value of another type": _mistype,
    "a misspelt value of a list": _misname_value,
}
TWO = "two of these at once"
TOOL = "a misspelt tool"


def break_calls(calls: list[Call]) -> dict[str, list[Broken]]:
    """Break every call in each way that it allows, always alike."""
    broken = {name: [_broken(call, [way]) for call in calls] for name, way in FAULTS.items()}
    broken[TWO] = [_broken(call, _two(call)) for call in calls]
    broken[TOOL] = [_misspelt(call) for call in calls]
    return {name: [each for each in found if each is not None] for name, found in broken.items()}


def _two(call: Call) -> list[Way]:
    return _random(call).sample(list(FAULTS.values()), 2)


def _broken(call: Call, ways: list[Way]) -> Broken | None:
    """Break the arguments in each of the ways, no argument twice."""
    random = _random(call)
    arguments, faults = dict(call.arguments), []
    changed: dict[str, Any] = {}
    for way in ways:
        fault = way(call, arguments, random)
        if fault is None:
            return None
        faults.append(fault)
        changed |= {fault.named: arguments.pop(fault.named)} if fault.named in arguments else {}
    return Broken(call, call.tool, {**arguments, **changed}, tuple(faults))


def _misspelt(call: Call) -> Broken | None:
    wrong = _misspell(call.tool, _random(call))
    return None if wrong in call.schemas else Broken(call, wrong, call.arguments, (Fault(wrong, call.tool),))


def _random(call: Call) -> Random:
    return Random(call.call_id)  # noqa: S311 - the same faults each time; nothing is secret


def loosen_calls(calls: list[Call]) -> dict[str, list[Broken]]:
    """What models send that has one meaning: arrays and numbers as text, null for what may be omitted."""
    arrays, numbers, nulls = list[Broken](), list[Broken](), list[Broken]()
    for call in calls:
        declared = call.schema["properties"]
        for found, kinds in ((arrays, ("array",)), (numbers, ("integer", "number"))):
            loose = {
                name: json.dumps(value)
                for name, value in call.arguments.items()
                if declared[name]["type"] in kinds
            }
            if loose:
                found.append(Broken(call, call.tool, {**call.arguments, **loose}, ()))
        omitted = dict.fromkeys(name for name in declared if name not in call.arguments)
        if omitted and not call.required & omitted.keys():
            nulls.append(Broken(call, call.tool, {**call.arguments, **omitted}, ()))
    return {"an array as JSON text": arrays, "a number as text": numbers, "null for omitted": nulls}
