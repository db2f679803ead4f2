"""JSON Schemas: one visitor of their parts, and the forms in which models and providers read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, NoReturn

from planning.tools.parameters.words import limits, spell

Node = Mapping[str, Any]
Path = Sequence[str | int]

_BY_NAME = frozenset({
    "properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions",
})  # fmt: skip
_UNIONS = ("anyOf", "oneOf")
_PARTS = frozenset({
    *_UNIONS, "allOf", "not", "if", "then", "else", "items", "prefixItems", "additionalItems", "contains",
    "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties", "contentSchema",
})  # fmt: skip
_COMPOSED = frozenset({"$ref", *_UNIONS})
_NULL: Node = {"type": "null"}

_MOST_LEVELS = 8
TOO_DEEP = f"nested more than {_MOST_LEVELS} levels; send a flatter object"

# The visitor


def changed(node: Node, change: Callable[[Node], Any]) -> dict[str, Any]:
    """A schema with something else in place of each schema that is directly in it."""

    def of(value: Any) -> Any:
        if isinstance(value, list):
            return [of(each) for each in value]
        return change(value) if isinstance(value, Mapping) else value

    made = {}
    for key, value in node.items():
        if key in _BY_NAME and isinstance(value, Mapping):
            made[key] = {name: of(part) for name, part in value.items()}
        else:
            made[key] = of(value) if key in _PARTS else value
    return made


def parts(schema: Node) -> Iterator[Node]:
    """A schema and every schema in it, at any depth; references are not followed."""
    todo = [schema]
    while todo:
        each = todo.pop()
        yield each
        changed(each, todo.append)


def options(root: Node, node: Node) -> list[Node]:
    """The forms that a part of a schema allows: each option of a union, each type; references followed."""
    if _COMPOSED.isdisjoint(node) and type(node.get("type")) is str:
        return [node]  # nearly every part
    found: list[Node] = []
    todo = [node]
    seen: set[int] = set()
    while todo:
        each = todo.pop()
        if "$ref" in each:
            target = _at(root, each["$ref"])
            if id(target) not in seen:
                seen.add(id(target))
                todo.append({**target, **{key: value for key, value in each.items() if key != "$ref"}})
        elif "anyOf" in each or "oneOf" in each:
            todo += [*listed(each, "anyOf"), *listed(each, "oneOf")][::-1]
        elif isinstance(each.get("type"), list):
            todo += [_NULL if kind == "null" else {**each, "type": kind} for kind in each["type"][::-1]]
        else:
            found.append(each)
    return found


def listed(node: Node, keyword: str) -> list[Node]:
    """The schemas in the list of a keyword: ``True`` allows anything, and ``False`` is dropped."""
    found = node.get(keyword)
    parts = found if isinstance(found, (list, tuple)) else ()
    return [each if isinstance(each, Mapping) else {} for each in parts if each is not False]


def union(nodes: Sequence[Node]) -> Node:
    """A schema that allows what one of these allows; empty if there is none."""
    return {"anyOf": nodes} if len(nodes) > 1 else nodes[0] if nodes else {}


def is_choice(nodes: Sequence[Node]) -> bool:
    """True if a value may be one of several of these, null not counted."""
    return len(nodes) > 1 and sum(node.get("type") != "null" for node in nodes) > 1


def below(root: Node, nodes: Iterable[Node], part: str | int) -> list[Node]:
    """The options of one part, an item or a field, of what some options of a schema allow."""
    found = [child for node in nodes if isinstance(child := _child(node, part), dict)]
    if len(found) > 1:  # a union whose options have the same part is one part further down
        found = list({id(child): child for child in found}.values())
    return [option for child in found for option in options(root, child)]


def node_at(root: Node, path: Path) -> Node:
    """The part of a schema for the place at a path, or a union of such; empty if there is none."""
    return union(_nodes_at(root, path))


def has_place(root: Node, path: Path) -> bool:
    """True if a schema has a part for the place at a path, if only to say that anything may be there."""
    return bool(_nodes_at(root, path))


def takes_null(root: Node, node: Node) -> bool:
    """True if a part of a schema allows null."""
    return any(each.get("type") == "null" or None in each.get("enum", ()) for each in options(root, node))


def declared_names(node: Node) -> set[str]:
    """The names of the fields that an object has, in any part of its schema."""
    inner = [part for key in ("allOf", *_UNIONS) for part in listed(node, key)]
    return set(node.get("properties", ())).union(*map(declared_names, inner))


def _nodes_at(root: Node, path: Path) -> list[Node]:
    nodes = options(root, root)
    for part in path:
        nodes = below(root, nodes, part)
    return nodes


def _child(node: Node, part: str | int) -> object:
    if isinstance(part, int):
        places = node.get("prefixItems", ())
        return places[part] if part < len(places) else node.get("items")
    return node.get("properties", {}).get(part, node.get("additionalProperties"))


def _at(root: Node, reference: object) -> Node:
    """The target of a JSON Pointer in a schema (RFC 6901); one that leads nowhere allows anything."""
    node: Any = root
    for part in str(reference).removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        node = node.get(name) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) and str(reference).startswith("#") else {}


def _definitions(schema: Node) -> dict[str, Any]:
    """The definitions of a schema by the references to them."""
    return {f"#/{place}/{name}": node for place in _PLACES for name, node in schema.get(place, {}).items()}


def is_recursive(schema: Node) -> bool:
    """True if a definition in a schema refers to itself, in one step or in several."""
    graph = {
        place: [each["$ref"] for each in parts(node) if isinstance(each.get("$ref"), str)]
        for place, node in _definitions(schema).items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return True
    return False


def branches(schema: Node, *unions: str) -> bool:
    """True if objects of a schema may hold one of several objects that hold one of several, and so on.

    A validator tries every one of them at every level: what such a schema takes is bounded in its depth.
    """
    has_reference = has_choice = False
    for node in parts(schema):
        has_reference |= "$ref" in node
        choice = [each for key in unions for each in listed(node, key)]
        has_choice |= sum("$ref" in each or each.get("type") == "object" for each in choice) > 1
    return has_reference and has_choice


def is_too_deep(data: Any) -> bool:
    """True if data has more levels than a schema that branches is tried on."""
    level = [data]
    for _ in range(_MOST_LEVELS + 1):
        values = [each.values() if isinstance(each, dict) else each for each in level]
        level = [inner for each in values for inner in each if isinstance(inner, (dict, list))]
        if not level:
            return False
    return True


# The form that models read

_PLACES = ("$defs", "definitions")  # the second is the older drafts'
_OWN = "#/$defs/"
_DROPPED = frozenset({"title", "default", "discriminator", "$defs", "$ref"})
_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
_ABOUT = frozenset({"title", "description", "default", "examples", "deprecated"})
_ORDER = (
    "type", "enum", "const", "properties", "required", "items", "prefixItems", "anyOf", "oneOf", "format",
    "description", "minLength", "maxLength", "minItems", "maxItems", "additionalProperties",
)  # fmt: skip


def published_schema(schema: Node) -> dict[str, Any]:
    """The schema that pydantic made, as short as it can be and still say everything.

    Definitions are written out, but for those that refer to themselves. Every object that names its
    properties is closed. The docstrings of classes go: they speak to programmers.
    """
    definitions = schema.get("$defs", {})
    recursive: dict[str, None] = {}

    def shorten(node: Node, inside: tuple[str, ...] = ()) -> dict[str, Any]:
        name, short = node.get("$ref", "").removeprefix(_OWN), {}
        if name in inside:
            recursive[name] = None
            short = {"$ref": _OWN + name}
        elif name:
            short = shorten(definitions[name], (*inside, name))
            short.pop("description", None)
        own = {key: value for key, value in node.items() if key not in _DROPPED}
        short |= changed(own, lambda part: shorten(part, inside))
        if "properties" in short:
            short.setdefault("additionalProperties", False)
        return dict(sorted(_with_one_type(short).items(), key=lambda item: _rank(item[0])))

    made = shorten(schema)
    made.pop("description", None)
    if recursive:
        made["$defs"] = {name: shorten(definitions[name], (name,)) for name in tuple(recursive)}
    return made


def without_null(node: Node) -> dict[str, Any]:
    """A part of a schema that does not take null, unless it takes nothing else."""
    rest = {key: value for key, value in node.items() if key not in {"anyOf", "enum"}}
    others = [option for option in node.get("anyOf", ()) if option != _NULL]
    values = [value for value in node.get("enum", ()) if value is not None]
    if len(others) == 1:
        return {**others[0], **rest}
    return {**node, **({"anyOf": others} if others else {}), **({"enum": values} if values else {})}


def single_types(schema: Any) -> Any:
    """The same schema with ``anyOf`` in place of lists of types: many readers take them for text."""
    return _with_one_type(changed(schema, single_types)) if isinstance(schema, Mapping) else schema


def _with_one_type(node: dict[str, Any]) -> dict[str, Any]:
    """A part of a schema with an option of ``anyOf`` for each type that it lists or that its options have."""
    values = node.get("enum", [node["const"]] if "const" in node else [])
    kinds = node.get("type", list(dict.fromkeys(_NAMES.get(type(value), "") for value in values)))
    if isinstance(kinds, str) or not kinds or not all(kinds) or "anyOf" in node:
        return node
    if len(kinds) == 1:
        return {**node, "type": kinds[0]}
    about = {key: value for key, value in node.items() if key in _ABOUT}
    rules = {key: value for key, value in node.items() if key not in _ABOUT and key != "type"}
    return {**about, "anyOf": [_of_kind(kind, rules) for kind in kinds]}


def _of_kind(kind: str, rules: Node) -> dict[str, Any]:
    if kind == "null":
        return {"type": kind}
    names = {kind, "integer"} if kind == "number" else {kind}
    values = [value for value in rules.get("enum", ()) if _NAMES.get(type(value)) in names]
    return {"type": kind, **rules, **({"enum": values} if values else {})}


def _rank(keyword: str) -> int:
    return _ORDER.index(keyword) if keyword in _ORDER else len(_ORDER)


# The strict form, for providers that enforce it

# The keywords and formats that the strict modes of OpenAI and of Anthropic both take:
# https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
# https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
_STRICT = frozenset({
    "type", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "$ref",
    "description",
})  # fmt: skip
_STRICT_FORMATS = frozenset({
    "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid",
})  # fmt: skip
# Keywords that a strict schema can do without: they describe, or the field's description mentions them.
_SPARE = frozenset({
    "title", "default", "examples", "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$comment",
    "$defs", "definitions", "discriminator", "uniqueItems", "contentMediaType", "contentEncoding",
    "format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
})  # fmt: skip


def strict_schema(schema: Node, name: str) -> dict[str, Any]:
    """A schema for a provider's strict mode: every property is required, an optional one may be null.

    Limits that the strict modes do not take are in the field's description.
    """
    schema = single_types(schema)
    made: dict[str, Any] = _strict(schema, schema, (), name)
    for place in _PLACES:
        if place in schema:
            made[place] = {
                each: _strict(node, schema, (place, each), name) for each, node in schema[place].items()
            }
    return made


def _strict(node: Any, root: Node, path: tuple[str | int, ...], name: str) -> Any:
    def inner(part: Any, *places: str | int) -> Any:
        return _strict(part, root, (*path, *places), name)

    if not isinstance(node, Mapping) or not node.keys() & {"type", "enum", "const", "anyOf", "oneOf", "$ref"}:
        _refuse(name, path, "takes any value; give it a type")
    foreign = sorted(node.keys() - _STRICT - _SPARE - {"oneOf"})
    if foreign:
        _refuse(name, path, f"is declared with {foreign[0]}; declare it without")
    if "$ref" in node:  # beside it nothing is allowed
        if node["$ref"] not in _definitions(root):
            _refuse(name, path, f"refers to {node['$ref']}; refer to a definition in $defs")
        return {"$ref": node["$ref"]}
    made = {key: value for key, value in node.items() if key in _STRICT}
    values = node.get("enum", [node.get("const")])
    if any(isinstance(value, (Mapping, list)) for value in values):
        _refuse(name, path, "lists arrays or objects; list text or numbers")
    kind = None if "anyOf" in node or "oneOf" in node else node.get("type")
    if kind == "object":
        if node.get("additionalProperties", True) is not False:
            instead = (
                "as in a dataclass or a TypedDict" if path else "without **kwargs or additionalProperties"
            )
            _refuse(name, path, f"takes fields that it does not name; name each, {instead}")
        required = node.get("required", ())
        made["properties"] = {
            each: inner(part, each) if each in required else _nullable(inner(part, each), root)
            for each, part in node.get("properties", {}).items()
        }
        made["required"] = list(made["properties"])
    if kind == "array":
        made["items"] = inner(node.get("items"), 0)
    choice = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    if choice:
        made["anyOf"] = [inner(option) for option in choice]
    if node.get("format") in _STRICT_FORMATS:
        made["format"] = node["format"]
    if node.get("minItems") in {0, 1}:
        made["minItems"] = node["minItems"]
    if said := limits({key: value for key, value in node.items() if key not in made}):
        made["description"] = f"{made['description']} ({said})" if "description" in made else said
    return made


def _nullable(node: dict[str, Any], root: Node) -> dict[str, Any]:
    """A part of a schema that also allows null."""
    if takes_null(root, node):
        return node
    said = {"description": node["description"]} if "description" in node else {}
    rest = {key: value for key, value in node.items() if key != "description"}
    return {**said, "anyOf": [*(rest["anyOf"] if rest.keys() == {"anyOf"} else [rest]), {**_NULL}]}


def _refuse(name: str, path: Path, reason: str) -> NoReturn:
    where = f"its parameter {spell(path)}" if path else "it"
    if path and path[0] in _PLACES:
        where = f"its definition {spell(path[1:])}"
    raise ValueError(f"{name} cannot be strict: {where} {reason}, or use strict=False")
