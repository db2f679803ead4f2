"""What mkdocs needs beside the pages in docs/: the specs, the reference of the command line, and llms.txt.

The specs stay in specs/ and the README at the root. They become pages of the built site alone, so that search
finds them and links to them are checked.
"""

from __future__ import annotations

import ast
import posixpath
import re
import sys
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parent.parent
LOADED = re.compile(
    r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"?https?:[^>]*>|@import|url\(['\"]?https?:"
)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?://|#)([^)\s#]+)(#[^)\s]*)?\)")
PICTURE = re.compile(r"!\[[^\]]*\]\((?!https?:|docs/)([^)\s]+)\)")
PRIVATE_BASE = re.compile(r"<code><span[^>]* title=\"[\w.]*\._\w+\">[^<]*</span></code>(?:,\s*)?")
CODE_OF_CELL = re.compile(r"(?<=<code>)[^<\n]+(?=</code>)(?=(?:(?!<t[dh]|</?table).)*</td>)")
NO_BASES = re.compile(r"<p class=\"doc doc-class-bases\">\s*Bases:\s*</p>")
BOOST = {
    "troubleshooting.md": 2,
    "howto": 3,
    "coming-from": 1,
    "specs": 1,
    "index.md": 0.5,
    "readme.md": 0.5,
    "figures.md": 0.5,
    "reference": 0.3,
    "CONTRIBUTING.md": 0.2,
}
"""How far up a page is among the results: a message leads to troubleshooting, a task to its page."""
SECTION = re.compile(r"^##+ (.*)\n(?:(?!##).*\n)*", re.MULTILINE)
SECTION_OF = {"Refused": "The command line"}
"""The section of troubleshooting for an error without a section."""
COMMANDS, CODES = "reference/cli.md", "reference/codes.md"
GENERATED = {COMMANDS: "what each command prints with --help.", CODES: "every code of a report."}
OUTSIDE = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
INTERNAL = {"ARCHITECTURE.md", "MODULES.md", "VIEW.md"}
"""Specs for contributors, which are not on the site; nor are the decision records in specs/adr."""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the specs, and the pages at the root that they link to."""
    specs = [path for path in sorted(ROOT.glob("specs/*.md")) if path.name not in INTERNAL]
    for path in [*specs, *(ROOT / name for name in OUTSIDE)]:
        uri = path.relative_to(ROOT).as_posix()
        if uri == "README.md":
            uri = "readme.md"  # mkdocs takes README.md for the front page
        page = File.generated(config, uri, abs_src_path=str(path))
        page.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(page)
        for picture in PICTURE.findall(path.read_text(encoding="utf-8")):
            stored = path.parent.joinpath(picture).resolve()
            files.append(
                File.generated(config, stored.relative_to(ROOT).as_posix(), abs_src_path=str(stored))
            )
    sys.path.insert(0, str(ROOT / "src"))
    files.append(File.generated(config, COMMANDS, content=_command_line()))
    files.append(File.generated(config, CODES, content=_codes()))
    return files


def on_page_markdown(markdown: str, *, page: Page, files: Files, **_: Any) -> str:
    """Point links at the pages of the site; a link to a file that is no page becomes the name of the file."""
    uri = page.file.src_uri
    page.meta["search"] = {"boost": BOOST.get(uri.partition("/")[0], 2)}
    in_tree = uri if page.file.generated_by else f"docs/{uri}"
    folder = posixpath.dirname("README.md" if uri == "readme.md" else in_tree)

    def moved(found: re.Match[str]) -> str:
        picture, text, target, anchor = found.groups()
        path = posixpath.normpath(posixpath.join(folder, target))
        if path.removeprefix("docs/") not in GENERATED and not (ROOT / path).exists():
            return found.group()  # mkdocs reports it
        wanted = path.removeprefix("docs/") if path != "README.md" else "readme.md"
        if files.get_file_from_path(wanted) is None:
            return text
        return f"{picture}[{text}]({posixpath.relpath(wanted, posixpath.dirname(uri) or '.')}{anchor or ''})"

    markdown = LINK.sub(moved, markdown)
    return SECTION.sub(_with_messages(), markdown) if uri == "troubleshooting.md" else markdown


def on_post_page(output: str, **_: Any) -> str:
    """Remove private bases from the reference, keep words in tables whole, and give screen readers names."""
    output = NO_BASES.sub("", PRIVATE_BASE.sub("", output)).replace("<th></th>", "<td></td>")
    output = CODE_OF_CELL.sub(
        lambda code: re.sub(r"\S+", r'<span class="word">\g<0></span>', code[0]), output
    )
    return output.replace('role="dialog">', 'role="dialog" aria-label="Search">', 1)


def on_post_build(*, config: MkDocsConfig) -> None:
    """Refuse a site that fetches anything, and write llms.txt: the pages, each with its first sentence."""
    for path in Path(config.site_dir).rglob("*"):
        if path.suffix in {".html", ".css"} and (loads := LOADED.search(path.read_text(encoding="utf-8"))):
            raise PluginError(f"{path}: {loads.group()} would be fetched; keep the file in docs/")
    lines = [f"# {config.site_name}", "", f"> {config.site_description}"]
    for group, pages in _groups(config.nav or []):
        lines += ["", f"## {group}", ""]
        lines += [f"- [{title}]({uri.removesuffix('.md')}.html): {_about(uri)}" for title, uri in pages]
    Path(config.site_dir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _command_line() -> str:
    """The help of each command, as the sources in src/ print it."""
    from planning.cli.app import app  # noqa: PLC0415 - of these sources, not of an installed package

    command = typer.main.get_command(app)
    parts = ["# The command line", "What each command prints with `--help`."]
    assert isinstance(command, typer.core.TyperGroup)  # noqa: S101 - it has commands
    for name in ["", *command.commands]:
        run = CliRunner().invoke(
            app, [*filter(None, [name]), "--help"], prog_name="planning", terminal_width=100
        )
        parts += [f"## planning {name}".rstrip(), f"```text\n{run.output.strip()}\n```"]
    return "\n\n".join(parts)


def _codes() -> str:
    """The codes of a report on a workflow document, a table for each category."""
    from planning.workflow.codes import CODES, Category  # noqa: PLC0415 - as above

    parts = ["# Codes of a workflow report", "What `validate_workflow` reports. Codes do not change."]
    for category in Category:
        rows = [
            f"| `{code}` | {kind.severity} | {kind.meaning} |"
            for code, kind in CODES.items()
            if kind.category == category
        ]
        parts.append(f"## {category.capitalize()}")
        parts.append("\n".join(["| code | severity | meaning |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def _with_messages() -> Callable[[re.Match[str]], str]:
    """Adds to a section of troubleshooting every message of its error, so that the search finds it."""
    messages: dict[str, dict[str, None]] = {}
    for path in sorted(ROOT.glob("src/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                parts = node.args[0].values if isinstance(node.args[0], ast.JoinedStr) else node.args[:1]
                texts = [part.value if isinstance(part, ast.Constant) else "..." for part in parts]
                message = "".join(map(str, texts))
                if message.count(" ") > 1:
                    messages.setdefault(SECTION_OF.get(node.func.id, node.func.id), {})[message] = None

    def section(found: re.Match[str]) -> str:
        title = found[1]
        if title not in messages:
            return found.group()
        items = "".join(f"<li>{escape(message)}</li>" for message in messages[title])
        summary = '<details class="messages"><summary>All messages</summary>'
        return f"{found.group()}\n{summary}<ul>{items}</ul></details>\n\n"

    return section


def _groups(nav: list[dict[str, Any]]) -> list[tuple[str, list[tuple[str, str]]]]:
    return [(title, list(_pages(inside))) for item in nav for title, inside in item.items()]


def _pages(nav: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for item in nav:
        for title, inside in item.items():
            if isinstance(inside, str):
                yield title, inside
            else:
                yield from _pages(inside)


def _about(uri: str) -> str:
    if uri in GENERATED:
        return GENERATED[uri]
    path = Path(ROOT, uri) if uri.startswith("specs/") else Path(ROOT, "docs", uri)
    _, text = re.split(r"^# .*\n\n", path.read_text(encoding="utf-8"), maxsplit=1, flags=re.MULTILINE)
    sentence = re.sub(r"\]\([^)]*\)|\[", "", text.partition("\n\n")[0].replace("\n", " "))
    return re.split(r"(?<=\.)\s", sentence)[0]
