"""Run a page of the documentation as its reader does: its Python, then its commands, in the current folder.

usage: PYTHON scripts/run_page.py PAGE

Each block prints what its comments at the left edge say. The commands are the ``planning`` ones of its
console blocks, except those that serve until they are stopped. The model that the page asks is a script.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

from planning.testing import ScriptedModel

BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ENDLESS = {"view", "watch", "mcp"}
"""The commands that serve until they are stopped."""


def run_python(page: Path, blocks: list[str]) -> None:
    """Run the blocks in one module, as the reader's file grows; exit where one prints something else."""
    names: dict[str, object] = {"__name__": "__main__"}
    for number, block in enumerate(blocks, 1):
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(block, f"{page.name}, block {number}", "exec"), names)  # noqa: S102 - a page of ours
        expected = re.findall(r"^# ?(.*)$", block, re.MULTILINE)
        if printed.getvalue().splitlines() != expected:
            raise SystemExit(f"{page.name}, block {number} printed:\n{printed.getvalue()}")


def main(page: Path) -> None:
    """Run the page."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    with ScriptedModel("The login works again.") as model:
        os.environ |= {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": model.openai_url}
        # The page has its store in a folder that goes; its commands read the file that it asks for instead.
        run_python(
            page,
            [
                text.replace('Path(mkdtemp(), "plans.db")', 'Path("plans.db")')
                for kind, text in blocks
                if kind == "python"
            ],
        )
    for line in "".join(text for kind, text in blocks if kind == "console").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words[:1] == ["planning"] and not ENDLESS & set(words):
            print(f"$ {shlex.join(words)}", flush=True)
            subprocess.run([sys.executable, "-m", *words], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
