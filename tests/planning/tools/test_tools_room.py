"""The rooms' own names: loaded when they are asked for, and no others."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import planning.prompt
import planning.tools


@pytest.mark.parametrize("room", [planning.tools, planning.prompt])
def test_a_room_lists_its_names_and_has_no_other(room: ModuleType) -> None:
    assert set(room.__all__) <= set(dir(room))
    with pytest.raises(AttributeError) as caught:
        room.nothing  # noqa: B018 - asking for it is the point
    assert str(caught.value) == f"module '{room.__name__}' has no attribute 'nothing'"


def test_a_name_is_loaded_when_it_is_asked_for() -> None:
    program = (
        "import sys, planning, planning.tools as tools; before = 'planning.tools.planner' in sys.modules;"
        "tools.parse_planner_output; print(before, 'planning.tools.planner' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout == "False True\n"
