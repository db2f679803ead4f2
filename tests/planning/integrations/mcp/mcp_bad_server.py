"""A server over stdio that behaves in the way that its argument says; with the standard library alone."""

from __future__ import annotations

import json
import sys
from typing import Any

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string", "minLength": 1}, "count": {"type": "integer", "maximum": 9}},
    "required": ["text"],
}
HOW = sys.argv[1] if len(sys.argv) > 1 else ""


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **more}


RESULTS: dict[str, dict[str, Any]] = {
    "refuse": said("echo needs a shorter text", isError=True),
    "silent": {"content": [], "isError": True},
    "image": {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]},
    "structured": said("two", structuredContent={"n": 2}),
    "strict": {"content": [], "structuredContent": {"m": 2}},
}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"Do {name}.", "inputSchema": SCHEMA, **more}


TOOLS = {
    "bad schema": [tool("x", inputSchema={"type": "object", "properties": {"a": {"type": "no type"}}})],
    "names": [tool("files.list"), tool("files_list"), tool("list all"), tool("x" * 129)],
    "strict": [tool("echo", outputSchema={"type": "object", "required": ["n"]})],
}


def listed(cursor: str | None) -> dict[str, Any]:
    if HOW == "endless":
        return {"tools": [tool(f"t{cursor}")], "nextCursor": f"{cursor}1"}
    if HOW == "pages" and cursor is None:
        return {"tools": [tool("one.first/tool")], "nextCursor": "2"}
    return {"tools": TOOLS.get(HOW, [tool("echo")])}


def called(arguments: dict[str, Any]) -> dict[str, Any]:
    if HOW == "die":
        sys.stderr.write("\x1b[31mout of luck\n")
        sys.exit(3)
    if HOW == "hang":
        sys.stdin.read()  # until the client leaves
    return RESULTS.get(HOW) or said(arguments["text"] * arguments.get("count", 1))


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; None for one that is not known."""
    if method == "initialize":
        info = {"name": "bad", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return listed(params.get("cursor"))
    if method == "tools/call" and HOW != "error":
        return called(params["arguments"])
    return None


def main() -> None:
    if HOW == "banner":
        sys.stdout.write("Welcome!\n")
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request["method"], request.get("params") or {})
        error = {"code": -32601, "message": "no\nsuch \x1b[31mmethod"}
        shown = {"error": error} if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **shown}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
