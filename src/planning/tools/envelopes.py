"""Envelopes: results in the form of pipelines, query tools and plain functions.

They are views of one ``ToolResult`` and agree on what happened: all of them succeed, or none does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from planning.tools.result import ToolResult


class _Private(dict[str, Any]):
    """A dict whose repr hides private data, as in an event loop's log."""

    def __repr__(self) -> str:
        return f"<private, success={self['success']!r}>"


def execution_envelope(tool: str, result: ToolResult) -> dict[str, Any]:
    """What ``Tool.execute`` returns: ``{success, tool, result, error, elapsed}``.

    The error is for the developer who called: it has the text of the exception, if any.
    """
    error = None if result.success else result.cause or result.error or result.message
    envelope = {
        "success": result.success,
        "tool": tool,
        "result": result.value,
        "error": error,
        "elapsed": result.elapsed,
    }
    return _Private(envelope) if result.is_private else envelope


def pipeline_envelope(result: ToolResult) -> dict[str, Any]:
    """What ``BaseTool.safe_execute`` returns: ``{success, data, error, user_message}``.

    A failure has its ``code`` too; one that waits for the user ``needs_user_input`` and
    ``input_request``. No text of an exception is in it.
    """
    envelope: dict[str, Any] = {
        "success": result.success,
        "data": result.value,
        "error": None if result.success else result.error or result.message,
        "user_message": result.user_message,
    }
    if not result.success:
        envelope["code"] = None if result.code is None else str(result.code)
    if result.needs_user_input:
        envelope |= {"needs_user_input": True, "input_request": result.input_request}
    return _Private(envelope) if result.is_private else envelope


class QueryResponses:
    """The two responses of a query, which a tool builds under its own name."""

    __slots__ = ()

    name: str

    def format_success_response(
        self, query_type: str, parameters: Mapping[str, Any], results: Any, **additional: Any
    ) -> dict[str, Any]:
        """Build ``{query_type, parameters, results, output_key, success}`` for a query that was answered.

        Args:
            query_type: The type of query that was carried out.
            parameters: The parameters that were used.
            results: The results.
            additional: Further fields; they cannot take the place of those five.
        """
        return {
            **additional,
            "query_type": query_type,
            "parameters": dict(parameters),
            "results": results,
            "output_key": self.name,
            "success": True,
        }

    def format_error_response(
        self,
        query_type: str,
        parameters: Mapping[str, Any],
        error: str,
        *,
        kind: Literal["error", "warning"] = "error",
        **additional: Any,
    ) -> dict[str, Any]:
        """Build the same for a query that failed: no results, and ``error`` or ``warning`` with the reason.

        Args:
            query_type: The type of query that was asked for.
            parameters: The parameters that were used.
            error: What went wrong.
            kind: Under which of the two names it is.
            additional: Further fields; they cannot take the place of the others.

        Raises:
            ValueError: ``kind`` is neither.
        """
        if kind not in {"error", "warning"}:
            raise ValueError(f"kind must be 'error' or 'warning', got {kind!r}")
        response = self.format_success_response(query_type, parameters, [], **additional)
        return response | {"success": False, kind: error}
