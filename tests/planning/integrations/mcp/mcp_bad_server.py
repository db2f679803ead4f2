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


def tool(name: str, **more: Any) -> dict[str, Any]:
    """A tool as it is listed."""
    return {"name": name, "description": f"Do {name}.", "inputSchema": SCHEMA, **more}


def listed(cursor: str | None) -> dict[str, Any]:
    """A page of tools."""
    if HOW == "endless":
        return {"tools": [tool(f"t{cursor}")], "nextCursor": f"{cursor}1"}
    if HOW == "bad schema":
        return {
            "tools": [tool("x", inputSchema={"type": "object", "properties": {"a": {"type": "no type"}}})]
        }
    if HOW == "pages" and cursor is None:
        return {"tools": [tool("one.first/tool")], "nextCursor": "2"}
    if HOW == "names":
        return {"tools": [tool("files.list"), tool("files_list"), tool("list all"), tool("x" * 129)]}
    if HOW == "strict":
        return {"tools": [tool("echo", outputSchema={"type": "object", "required": ["n"]})]}
    return {"tools": [tool("echo")]}


def called(arguments: dict[str, Any]) -> dict[str, Any]:
    """The result of a call."""
    if HOW == "die":
        sys.stderr.write("\x1b[31mout of luck\n")
        sys.exit(3)
    if HOW == "hang":
        sys.stdin.read()  # until the client leaves
    if HOW == "refuse":
        return {"content": [{"type": "text", "text": "echo needs a shorter text"}], "isError": True}
    if HOW == "silent":
        return {"content": [], "isError": True}
    if HOW == "image":
        return {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}
    if HOW == "structured":
        return {"content": [{"type": "text", "text": "two"}], "structuredContent": {"n": 2}}
    if HOW == "strict":
        return {"content": [], "structuredContent": {"m": 2}}
    if HOW == "large":
        return {"content": [{"type": "text", "text": "y" * 200_000}]}
    return {"content": [{"type": "text", "text": arguments["text"] * arguments.get("count", 1)}]}


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
    """Answer until the input ends."""
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
