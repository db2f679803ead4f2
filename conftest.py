"""What all tests share: Hypothesis profiles; and the examples of the README and the specs, run as tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

# How many examples each property tries; `--hypothesis-profile=NAME` chooses. A slow machine is not a failure.
for name, examples in {"quick": 30, "thorough": 100, "long": 3_000}.items():
    settings.register_profile(
        name, max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
# For `make mutants`: the same examples every time, and nothing learned from a mutant. Tests run in another
# order and in forked processes there.
settings.register_profile(
    "mutants",
    max_examples=30,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)
settings.load_profile("quick")

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser()],
    patterns=["README.md", "specs/*.md"],
).pytest()
