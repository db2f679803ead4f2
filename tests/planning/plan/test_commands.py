"""Plans and commands as data; tests/test_data_classes.py stores what their fields are."""

from __future__ import annotations

import copy
import pickle

from hypothesis import given

from planning import Plan
from planning.plan.commands import Command
from strategies import commands, plans


@given(commands() | plans())
def test_a_value_can_be_compared_hashed_copied_and_pickled(value: Command | Plan) -> None:
    for twin in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)):  # noqa: S301 - its own pickle
        assert twin == value
        assert hash(twin) == hash(value)
        assert repr(twin) == repr(value)
