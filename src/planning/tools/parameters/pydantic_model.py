"""Parameter models made with pydantic, for those who use it; it is never imported before they do."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from functools import cached_property
from itertools import chain
from typing import Any, Literal

import pydantic

from planning.errors import Problem
from planning.tools.parameters import words
from planning.tools.parameters.coercion import coerced
from planning.tools.parameters.model import NO_JSON, Diagnose, ParameterModel
from planning.tools.parameters.pydantic_errors import problems_of
from planning.tools.parameters.refusals import words_of
from planning.tools.parameters.schema import closed, shortened

__all__ = ["PydanticModel"]


class PydanticModel(ParameterModel):
    """A pydantic model, or a pydantic dataclass.

    Fields that it does not know are refused at every depth, unless its configuration says what
    else to do with them. pydantic converts as it is configured to: ``"3"`` becomes 3 where it is lax.
    """

    def __init__(self, kind: type[Any]) -> None:
        """Take a model.

        Raises:
            TypeError: pydantic is older than 2.12, which cannot refuse unknown fields on request; or no
                schema can be made of the model.
        """
        if tuple(map(int, pydantic.VERSION.split(".")[:2])) < (2, 12):
            raise TypeError(f"parameter models need pydantic 2.12 or newer, got {pydantic.VERSION}")
        self.kind = kind
        self.name = kind.__name__
        self._extra: Literal["forbid"] | None = None if "extra" in _configuration(kind) else "forbid"
        try:
            adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(kind)
            schema = adapter.json_schema()
        except (pydantic.errors.PydanticUserError, NameError, RecursionError) as error:
            reason = str(error).splitlines()[0]
            raise TypeError(f"{kind.__name__} cannot be described as JSON: {reason}") from None
        self._structure = closed(schema, schema.get("$defs", {}))
        self._validator = adapter.validator
        self._validate = adapter.validator.validate_python

    def schema(self) -> dict[str, Any]:
        """See ``ParameterModel``."""
        return copy.deepcopy(self._published)

    def convert(self, data: dict[str, Any], diagnose: Diagnose | None = None) -> Any:
        """See ``ParameterModel``."""
        try:
            return self._validate(data, extra=self._extra)
        except Exception:  # noqa: BLE001, S110 - a validator may stumble over what is not repaired yet
            pass
        repaired, problems = data, list[Problem]()
        try:
            repaired = coerced(data, self._structure)
            return self._validated(repaired)
        except pydantic.ValidationError as error:
            problems = problems_of(error, repaired, self._published)
        except RecursionError:
            problems = [Problem(NO_JSON, tells=False)]
        except (ValueError, TypeError) as error:
            problems = [Problem(words_of(error))]
        # Outside of the handler: pydantic's error holds what was sent.
        others = () if diagnose is None else diagnose(repaired)
        raise words.refusal(chain(problems, others), self._published)

    def check(self, data: dict[str, Any]) -> None:
        """See ``ParameterModel``."""
        self.convert(data)

    @cached_property
    def _published(self) -> dict[str, Any]:
        return shortened(self._structure)

    def _validated(self, data: Any) -> Any:
        """Validate as JSON what JSON can say: a strict model takes a text for a date only so."""
        text = _as_json(data)
        if text is None:
            return self._validate(data, extra=self._extra)
        return self._validator.validate_json(text, extra=self._extra)


def _as_json(data: Any) -> str | None:
    """The data as JSON text; None if that is not the same, because names are no text or a text is broken."""
    try:
        text = json.dumps(data, ensure_ascii=False)
        text.encode()
        return text if json.loads(text) == data else None
    except (TypeError, ValueError, RecursionError):
        return None


def _configuration(kind: type[Any]) -> Mapping[str, Any]:
    """What a model, or else a pydantic dataclass, is configured to do."""
    found: Mapping[str, Any] | None = getattr(
        kind, "model_config", getattr(kind, "__pydantic_config__", None)
    )
    return found or {}
