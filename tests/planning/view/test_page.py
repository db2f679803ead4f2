"""The page as bytes: its data, and what a browser lets it do."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources
from typing import Any

import pytest

from planning.view.page import export_page, live_page, policy

PAGE = resources.files("planning.view").joinpath("page.html").read_text("utf-8")


def embedded(page: bytes) -> Any:
    """The data in a page, as a browser finds it: up to the first end of a script."""
    text = page.decode().split('<script type="application/json" id="data">', 1)[1]
    return json.loads(text.split("</script", 1)[0])


def hashes(pattern: str) -> str:
    (found,) = re.findall(pattern, PAGE, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(found.encode()).digest()).decode()}'"


def test_the_page_has_one_style_and_one_script_and_is_less_than_120_kilobytes() -> None:
    for tag in (
        "<style>",
        "<script>",
        '<script type="application/json" id="data">',
        '<meta charset="utf-8">',
    ):
        assert PAGE.count(tag) == 1
    assert len(export_page("{}")) < 120_000


def test_a_browser_lets_it_use_its_own_style_and_script_and_nothing_else() -> None:
    rules = (
        f"default-src 'none'; style-src {hashes('<style>(.*?)</style>')}; "
        f"script-src {hashes('<script>(.*?)</script>')}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert policy(is_live=False) == rules
    assert policy(is_live=True) == rules.replace("img-src data:;", "img-src data:; connect-src 'self';")
    for page, is_live in ((export_page("{}"), False), (live_page("{}"), True)):
        meta = f'<meta http-equiv="Content-Security-Policy" content="{policy(is_live=is_live)}">'
        assert page.decode().count(meta) == 1
        assert page.decode().index(meta) < page.decode().index("<style>")


def test_a_file_has_its_run_and_a_live_page_where_to_ask() -> None:
    assert embedded(export_page('{"format":1}')) == {"mode": "export", "run": {"format": 1}}
    assert embedded(live_page('{"mode":"live"}')) == {"mode": "live"}


@pytest.mark.parametrize(
    "text", ["</SCRIPT >", "<!--<script>", "]]>", "\u2028\u2029", "\\", "\x00\x1b", "\\1 \\g<0>", "é"]
)
def test_no_text_of_the_data_acts_in_the_page(text: str) -> None:
    page = export_page(json.dumps({"title": text}, ensure_ascii=False))
    assert embedded(page) == {"mode": "export", "run": {"title": text}}
    assert page.decode().count("<") == export_page("{}").decode().count("<")
