"""A step's inputs against the parameters of its tool; values of references are not known yet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planning.errors import Problem, ToolValidationError, show
from planning.reading import Found, Path
from planning.tools.errors import PASSING, QueryTypeUnsupported
from planning.tools.parameters.arguments import withheld
from planning.tools.parameters.json_schema import SchemaModel
from planning.tools.parameters.model import ParameterModel
from planning.tools.parameters.schema import has_place, is_choice, node_at, options
from planning.tools.tool import Tool, ToolSpec
from planning.workflow.checks.overview import named
from planning.workflow.codes import plain
from planning.workflow.references import has_reference, path_of, texts_in

if TYPE_CHECKING:
    from planning.workflow.drafts import Draft

_PART = re.compile(r"\[(\d{1,15})\]|([^.\[\]]+)")
_EXPECTED = re.compile(r"expected (.+), got [^,]+")
_LONGEST = 300


class ToolInputs:
    """The parameters that the inputs of one tool are checked against.

    Inputs without references are checked by the tool's own parameters. With references, a problem counts only
    where the published schema finds one too, and not at a value that holds a reference or around it: anything
    else may be the reference's doing. A name that the tool does not have is always a problem.
    """

    def __init__(self, name: str, tool: Tool) -> None:
        """Keep what is checked against."""
        self._name = named(name)
        self._tool = tool
        self._published: dict[str | None, SchemaModel] = {}

    def check(self, draft: Draft) -> list[Found]:
        """The problems that the tool will find in a step's inputs; never raises."""
        given = draft.inputs
        if given is None and draft.fields.get(draft.inputs_field) is None:
            given = {}  # a step without inputs lacks those that the tool needs
        try:
            model = self._tool.model
            if given is None:
                return []
            # A copy: a tool's own validator may change what it is given.
            problems = _problems(model, _copy(given))
            return self._findings(draft, given, problems) if problems else []
        except PASSING:
            raise
        except BaseException:  # noqa: BLE001 - what a tool's own code raises says nothing of the plan
            return []

    def _findings(self, draft: Draft, given: Mapping[str, Any], problems: list[Problem]) -> list[Found]:
        """The problems as findings, but for those that may be a reference's."""
        located = [(problem, _locate(given, problem.path)) for problem in problems]
        places = {path_of(link) for text, link in texts_in(given) if has_reference(text)}
        if places:
            schema = self._schema(given)
            around = {place[:end] for place in places for end in range(len(place))}
            root = schema.published  # a reference may decide which part of a choice is meant
            unclear = places | {path for path in around if is_choice(options(root, node_at(root, path)))}
            refused = {problem.path for problem in _problems(schema, dict(given))}
            located = [
                (problem, path)
                for problem, path in located
                if (_is_unknown(problem) and not has_place(root, path))
                or (
                    problem.path in refused
                    and unclear.isdisjoint(path[:end] for end in range(len(path) + 1))
                    and (path not in around or problem.message.startswith(("missing", "expected")))
                )
            ]
        return [self._make_found(draft, problem, path) for problem, path in located]

    def _schema(self, given: Mapping[str, Any]) -> SchemaModel:
        """The published schema of the tool, with the parameters of the type of query that is asked."""
        spec, query = self._tool.parameters, given.get("query_type")
        if not (isinstance(spec, ToolSpec) and isinstance(query, str) and query in spec.input_schema):
            query = None
        if query not in self._published:
            schema = dict(self._tool.model.published)
            if query is not None and isinstance(spec, ToolSpec):
                schema["properties"] = {**schema["properties"], "parameters": spec.model(query).published}
            self._published[query] = SchemaModel(schema)
        return self._published[query]

    def _make_found(self, draft: Draft, problem: Problem, path: Path) -> Found:
        is_unknown = _is_unknown(problem)
        if self._tool.returns_private_data:
            problem = withheld(problem, self._tool.model.published)
        what, _, hint = problem.message.partition("; ")
        wanted = _EXPECTED.fullmatch(what)
        hint = hint or (f"send {wanted[1]}" if wanted else f"send what {self._name} takes")
        where = f"input {problem.path} of {self._name}" if problem.path else f"the inputs of {self._name}"
        message = f"{where} is missing" if what == "missing" else f"{where}: {what}"
        path = path if draft.inputs is None else (draft.inputs_field, *path)
        return draft.found(
            "bad_input", plain(message, _LONGEST), plain(hint, _LONGEST), path, at_key=is_unknown
        )


def _copy(value: Any) -> Any:
    """A copy of a JSON value; a document is not nested deep."""
    if isinstance(value, dict):
        return {name: _copy(each) if isinstance(each, (dict, list)) else each for name, each in value.items()}
    return [_copy(each) for each in value] if isinstance(value, list) else value


def _is_unknown(problem: Problem) -> bool:
    """True if the tool has no parameter of a name."""
    return problem.keyword == "additionalProperties"


def _problems(model: ParameterModel, inputs: dict[str, Any]) -> list[Problem]:
    """The problems for which a model refuses inputs."""
    try:
        model.convert(inputs)
    except QueryTypeUnsupported as error:
        message = f"query type {show(error.query_type)} is not supported"
        return [Problem(f"{message}; send one of {', '.join(error.supported_types)}", "query_type")]
    except ToolValidationError as error:
        return list(error.problems)
    return []


def _locate(inputs: Mapping[str, Any], path: str) -> Path:
    """The path that a spelled path such as ``steps[1].title`` means, as far as the inputs have it."""
    value: Any = inputs
    found = list[str | int]()
    for index, name in _PART.findall(path):
        if index and isinstance(value, (list, tuple)) and int(index) < len(value):
            found.append(int(index))
        elif isinstance(value, Mapping) and name in value:
            found.append(name)
        else:
            break
        value = value[found[-1]]
    return tuple(found)
