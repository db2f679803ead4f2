"""What the README says that its programs print, they print."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("readme_model")
def test_the_programs_print_what_the_comments_beside_them_say() -> None:
    program = "\n".join(re.findall(r"```python\n(.*?)```", README, re.DOTALL))
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    said = re.findall(r"^(?:print\(.*\)  )?# (.*)$", program, re.MULTILINE)
    assert [line for line in run.stdout.splitlines() if not line.startswith("Plan(")] == said
