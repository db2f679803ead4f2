"""A step's inputs against the parameters of its tool; what a reference will give is not known yet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planning.errors import Problem, ToolValidationError, show
from planning.tools.errors import PASSING, QueryTypeUnsupported
from planning.tools.parameters.coercion import BOOLEANS
from planning.tools.parameters.model import FreeModel, ParameterModel
from planning.tools.parameters.words import node_at, spell, withheld
from planning.tools.tool import Tool, ToolSpec
from planning.workflow.checks.names import named
from planning.workflow.checks.samples import KEEP, sample_of
from planning.workflow.findings import Found, Path, plain
from planning.workflow.references import has_reference

if TYPE_CHECKING:
    from planning.workflow.drafts import Draft

__all__ = ["DEEP", "LITERAL", "REFERRING", "ToolInputs"]

LITERAL, REFERRING, DEEP = range(3)

_INDEX = re.compile(r"\[([0-9]{1,15})\]")
_EXPECTED = re.compile(r"expected (.+), got [^,]+")
_LONGEST_NAME = 60
_LONGEST = 300
_MOST_SAMPLES = 1_000
_OUT: Any = object()
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,299}+)")
_NUMBER = re.compile(rf"{_WHOLE.pattern}(?:\.[0-9]{{1,300}}+)?(?:[eE][+-]?[0-9]{{1,2}}+)?\Z")
_SCALAR = re.compile(rf"{_NUMBER.pattern}|(?i:true|false)\Z")


class ToolInputs:
    """What the inputs of one tool are checked against.

    A value with a reference is not known yet. For the check, a value that the parameter takes replaces it;
    a problem at that value, or one that it may have caused, is not reported.
    """

    def __init__(self, name: str, tool: Tool) -> None:
        """Its parameters are read when the first step names it.

        Args:
            name: What plans call it.
            tool: The tool.
        """
        self._name = named(name)
        self._tool = tool
        self._model: ParameterModel | None = None
        self._is_read = False
        self._schemas: dict[str | None, dict[str, Any]] = {}
        self._samples: dict[tuple[str | None, Path], Any] = {}

    def check(self, draft: Draft, form: int = DEEP) -> list[Found]:
        """What the tool will refuse in a step's inputs; never raises.

        Args:
            draft: The step.
            form: ``LITERAL`` where no input holds a reference, and none is an array or an object;
                ``REFERRING`` where none is an array or an object.
        """
        try:
            model = self._model if self._is_read else self._read()
            given = draft.inputs
            if given is None and draft.fields.get(draft.inputs_field) is None:
                given = {}  # a step without inputs lacks those that the tool needs
            if model is None or given is None:
                return []
            # A copy each time: a tool's own validator may change what it is given.
            quoted: dict[Path, str] = {}
            if form == DEEP or any(isinstance(each, str) and _SCALAR.match(each) for each in given.values()):
                inputs = self._copy(given, {}, quoted)
            else:
                inputs = dict(given)
            if form == REFERRING:
                query = _query_type(given)
                for name, value in given.items():
                    if isinstance(value, str) and has_reference(value):
                        inputs[name] = self._sample(query, (name,), value)
            problems = _problems(model, inputs)
            found = self._findings(draft, model, problems) if problems else []
            return found + self._quoted(draft, quoted, found) if quoted else found
        except PASSING:
            raise
        except BaseException:  # noqa: BLE001 - what a tool's own code raises says nothing of the plan
            return []

    def _read(self) -> ParameterModel | None:
        """The parameter model; None where there is none to check against."""
        self._is_read = True  # once: a tool whose type hints cannot be read is not read for each step
        model = self._tool.model
        self._model = None if isinstance(model, FreeModel) else model
        return self._model

    def _copy(
        self,
        inputs: Mapping[str, Any],
        places: dict[Path, None],
        quoted: dict[Path, str],
        *,
        without: bool = False,
    ) -> Any:
        """The inputs, with a value that the tool takes for each that holds a reference.

        Args:
            inputs: The inputs.
            places: Takes the paths of the values with references.
            quoted: Takes the paths of the numbers and booleans in quotes, which are copied without them.
            without: Whether such a value of an object is omitted instead.
        """
        query = _query_type(inputs)
        root: dict[str, Any] = {}
        todo: list[tuple[Any, Any, Path]] = [(inputs, root, ())]
        while todo:
            source, target, path = todo.pop()
            is_object = isinstance(source, Mapping)
            for key, value in source.items() if is_object else enumerate(source):
                copied = value
                if isinstance(value, str):
                    if has_reference(value):
                        place = (*path, key)
                        places[place] = None
                        copied = _OUT if without and is_object else self._sample(query, place, value)
                    elif _SCALAR.match(value):
                        scalar = self._scalar(query, (*path, key), value)
                        if scalar is not None:
                            quoted[(*path, key)] = "boolean" if isinstance(scalar, bool) else "number"
                            copied = scalar
                elif isinstance(value, Mapping):
                    copied = {}
                    todo.append((value, copied, (*path, key)))
                elif isinstance(value, (list, tuple)):
                    copied = []
                    todo.append((value, copied, (*path, key)))
                if not is_object:
                    target.append(copied)
                elif copied is not _OUT:
                    target[key] = copied
        return root

    def _sample(self, query: str | None, place: Path, text: str) -> Any:
        """The value that replaces a text with a reference at a place."""
        key = (query, place)
        sample = self._samples.get(key)
        if sample is None:
            sample = sample_of(node_at(self._schema(query), place))
            if len(self._samples) < _MOST_SAMPLES:  # the places are the documents', and may be any
                self._samples[key] = sample
        if sample is KEEP:
            return text
        return self._copy({"": sample}, {}, {})[""] if isinstance(sample, (dict, list)) else sample

    def _scalar(self, query: str | None, place: Path, text: str) -> float | bool | None:
        """The number or the boolean that a text is, where the tool takes only that; None anywhere else."""
        node = node_at(self._schema(query), place)
        options = [each.get("type") for key in ("anyOf", "oneOf") for each in node.get(key, ())]
        kinds = {each for each in options or [node.get("type")] if each != "null"}
        if text.lower() in BOOLEANS:
            return BOOLEANS[text.lower()] if kinds == {"boolean"} else None
        if kinds == {"integer"}:
            return int(text) if _WHOLE.fullmatch(text) else None
        return float(text) if kinds and kinds <= {"integer", "number"} and _NUMBER.fullmatch(text) else None

    def _quoted(self, draft: Draft, quoted: dict[Path, str], found: list[Found]) -> list[Found]:
        """The warnings about numbers and booleans in quotes, but for those that are wrong without, too."""
        base = (*draft.path, draft.inputs_field)
        wrong = {each.path for each in found}
        return [
            Found(
                f"{kind}_as_text",
                f"input {spell(path)} of {self._name} is a {kind} in quotes",
                f"send the {kind} without quotes",
                (*base, *path),
                step_index=draft.number,
                step_id=draft.step_id,
            )
            for path, kind in quoted.items()
            if (*base, *path) not in wrong
        ]

    def _schema(self, query: str | None) -> dict[str, Any]:
        """The schema of the tool's parameters, for a type of query where it has such."""
        spec = self._tool.parameters
        if not isinstance(spec, ToolSpec) or query not in spec.input_schema:
            query = None
        schema = self._schemas.get(query)
        if schema is None:
            schema = dict(self._tool.model.shape)
            if query is not None:
                parameters = spec.model(query).shape
                schema["properties"] = {**schema["properties"], "parameters": parameters}
            self._schemas[query] = schema
        return schema

    def _findings(self, draft: Draft, model: ParameterModel, problems: list[Problem]) -> list[Found]:
        """The problems as findings, but for those that are a reference's."""
        inputs: Mapping[str, Any] = draft.inputs or {}
        places: dict[Path, None] = {}
        self._copy(inputs, places, {})
        schema = self._schema(_query_type(inputs))
        locator = _Locator(inputs)
        located = [(problem, *locator.locate(problem.path)) for problem in problems]
        if places:
            around = {place[:end] for place in places for end in range(len(place))}
            unknown = [each for each in located if _is_unknown(*each)]  # whatever their values are
            located = [
                (problem, path, rest)
                for problem, path, rest in located
                if not any(path[:end] in places for end in range(len(path) + 1))
                and (rest or path not in around or _is_sure(schema, path, inputs))
            ]
            if located:
                # A validator of one field may have looked at another one, that holds a reference: what
                # is wrong in itself is wrong without it as well.
                still = {*_problems(model, self._copy(inputs, {}, {}, without=True))}
                located = [each for each in located if each[0] in still and each not in unknown]
            located = unknown + located
        return [self._found(draft, schema, *each) for each in located]

    def _found(self, draft: Draft, schema: dict[str, Any], problem: Problem, path: Path, rest: str) -> Found:
        is_unknown = _is_unknown(problem, path, rest)
        if self._tool.returns_private_data:
            problem = withheld(problem, schema)
        what, _, hint = problem.message.partition("; ")
        wanted = _EXPECTED.fullmatch(what)
        hint = hint or (f"send {wanted[1]}" if wanted else f"send what {self._name} takes")
        where = f"input {problem.path} of {self._name}" if problem.path else f"the inputs of {self._name}"
        message = f"{where} is missing" if what == "missing" else f"{where}: {what}"
        base = draft.path if draft.inputs is None else (*draft.path, draft.inputs_field)
        return Found(
            "bad_input",
            plain(message, _LONGEST),
            plain(hint, _LONGEST),
            (*base, *path),
            at_key=is_unknown,
            step_index=draft.number,
            step_id=draft.step_id,
        )


def _is_unknown(problem: Problem, path: Path, rest: str) -> bool:
    """Whether the tool has no parameter of a name."""
    return not rest and bool(path) and problem.message.startswith("unknown field")


def _query_type(inputs: Mapping[str, Any]) -> str | None:
    query = inputs.get("query_type")
    return query if isinstance(query, str) else None


def _problems(model: ParameterModel, inputs: dict[str, Any]) -> list[Problem]:
    """What a model refuses inputs for."""
    try:
        model.convert(inputs)
    except QueryTypeUnsupported as error:
        message = f"query type {show(error.query_type)} is not supported"
        return [Problem(f"{message}; send one of {', '.join(error.supported_types)}", "query_type")]
    except ToolValidationError as error:
        return list(error.problems)
    return []


def _is_sure(schema: Mapping[str, Any], path: Path, inputs: Mapping[str, Any]) -> bool:
    """Whether a container is wrong whatever the references in it give: by its type or its length."""
    value: Any = inputs
    for part in path:
        value = value[part]
    node = node_at(schema, path)
    own = "object" if isinstance(value, Mapping) else "array"
    if "type" not in node or node["type"] != own:
        return "type" in node
    return own == "array" and not node.get("minItems", 0) <= len(value) <= node.get("maxItems", len(value))


class _Locator:
    """Finds the values that spelled paths, such as ``steps[1].title``, lead to."""

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        self._inputs = inputs
        self._spelled: dict[int, dict[str, str]] = {}

    def locate(self, path: str) -> tuple[Path, str]:
        """The path to the value, as far as there is one, and what is left of the spelled path."""
        value: Any = self._inputs
        found, at = list[str | int](), 0
        while at < len(path):
            start = at + (path[at] == "." and at > 0)
            step = self._step(value, path, start)
            if step is None:
                break
            part, at = step
            found.append(part)
            value = value[part]
        return tuple(found), path[at:]

    def _step(self, value: Any, path: str, start: int) -> tuple[str | int, int] | None:
        """The next name or index, and where in the spelled path it ends."""
        if isinstance(value, (list, tuple)):
            index = _INDEX.match(path, start)
            return (int(index[1]), index.end()) if index and int(index[1]) < len(value) else None
        if not isinstance(value, Mapping):
            return None
        names = self._names(value)
        for end in range(min(len(path), start + _LONGEST_NAME), start, -1):  # names may hold dots
            if path[end : end + 1] in {"", ".", "["} and path[start:end] in names:
                return names[path[start:end]], end
        return None

    def _names(self, value: Mapping[str, Any]) -> dict[str, str]:
        """The names of an object, by how they are spelled in the paths of problems."""
        names = self._spelled.get(id(value))
        if names is None:
            names = self._spelled[id(value)] = {}
            for name in value:
                names.setdefault(ascii(name)[1:-1][:_LONGEST_NAME], name)
                names.setdefault(show(name)[1:-1], name)
        return names
