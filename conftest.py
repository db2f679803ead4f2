"""The Python examples of the README and the specs run as tests, each file in one namespace."""

from __future__ import annotations

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser()],
    patterns=["README.md", "specs/*.md"],
).pytest()
