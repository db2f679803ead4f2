"""The page: one HTML file, with data in it, and with the rules for what it may do."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib import resources
from typing import Final

_CHARSET: Final = '<meta charset="utf-8">'
_DATA: Final = re.compile(r'(<script type="application/json" id="data">)(.*?)(</script>)', re.DOTALL)
_STYLE: Final = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_SCRIPT: Final = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def policy(*, is_live: bool) -> str:
    """The rights of the page in a browser: its own style and script, and requests to its server when live."""
    html = _template()
    connects = " connect-src 'self';" if is_live else ""
    return (
        f"default-src 'none'; style-src {_hash(_STYLE, html)}; script-src {_hash(_SCRIPT, html)};"
        f" img-src data:;{connects} base-uri 'none'; form-action 'none'"
    )


def export_page(run: str) -> bytes:
    """The page as a file."""
    return _page(f'{{"mode":"export","run":{run}}}', is_live=False)


def live_page(data: str) -> bytes:
    """The page that asks a server."""
    return _page(data, is_live=True)


def _page(data: str, *, is_live: bool) -> bytes:
    meta = f'{_CHARSET}\n<meta http-equiv="Content-Security-Policy" content="{policy(is_live=is_live)}">'
    html = _template().replace(_CHARSET, meta, 1)
    # No text can end the script, or be read as a comment. Half a character becomes its JSON escape.
    written = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return _DATA.sub(lambda found: found[1] + written + found[3], html, count=1).encode(
        "utf-8", "backslashreplace"
    )


def _hash(pattern: re.Pattern[str], html: str) -> str:
    found = pattern.search(html)
    digest = hashlib.sha256((found[1] if found else "").encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def _template() -> str:
    return resources.files("planning.view").joinpath("page.html").read_text("utf-8")
