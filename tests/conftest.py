"""Fixtures that all tests share."""

from __future__ import annotations

import pytest

from planning import PlanningToolsSection, Toolbox
from session import InProcessEventBus, Session


@pytest.fixture
def bus() -> InProcessEventBus:
    """A bus in memory."""
    return InProcessEventBus()


@pytest.fixture
def session(bus: InProcessEventBus) -> Session:
    """A session on the bus."""
    return Session(bus=bus)


@pytest.fixture
def section(session: Session) -> PlanningToolsSection:
    """The planning section of the session."""
    return PlanningToolsSection(session=session)


@pytest.fixture
def toolbox(section: PlanningToolsSection, session: Session) -> Toolbox:
    """The six planning tools in the name of the session."""
    return Toolbox(section.tools(), session=session)
