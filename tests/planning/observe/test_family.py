"""family_progress: the plans of a session and its open children, as a tree with counts."""

from __future__ import annotations

from laws import work_of
from planning import FamilyProgress, MarkStep, NewPlanStep, PlanStatus, SetupPlan, family_progress
from planning.suite.tools import register_plan
from session import Session, SessionId


def planned(name: str, steps: int, done: int, parent: Session | None = None) -> Session:
    session = Session(session_id=name, parent=parent)
    register_plan(session)
    session.dispatch(SetupPlan(f"Goal of {name}", tuple(NewPlanStep(f"Step {n}") for n in range(steps))))
    for number in range(1, done + 1):
        session.dispatch(MarkStep(f"S{number:03}", "done"))
    return session


def leaf(session_id: SessionId, done: int, total: int) -> FamilyProgress:
    status: PlanStatus = "completed" if done == total else "active"
    return FamilyProgress(session_id, f"Goal of {session_id}", status, done, total, (done, total), ())


def test_the_tree_has_each_session_with_its_own_counts_and_those_below_it() -> None:
    root = planned("root", 3, 1)
    first = planned("first", 2, 2, root)
    planned("inner", 4, 3, first)
    Session(session_id="none", parent=root)
    planned("closed", 1, 0, root).close()
    expected = FamilyProgress(
        "root", "Goal of root", "active", 1, 3, (6, 9),
        (
            FamilyProgress("first", "Goal of first", "completed", 2, 2, (5, 6), (leaf("inner", 3, 4),)),
            FamilyProgress("none", None, None, 0, 0, (0, 0), ()),
        ),
    )  # fmt: skip
    family = family_progress(root)
    assert family == expected
    assert hash(family) == hash(expected)
    assert str(family).splitlines() == [
        "root: active, 1 of 3 done (6 of 9 with children): Goal of root",
        "  first: completed, 2 of 2 done (5 of 6 with children): Goal of first",
        "    inner: active, 3 of 4 done: Goal of inner",
        "  none: no plan",
    ]
    assert family_progress(first) == family.children[0] != family.children[1]


def test_the_work_grows_with_the_children_alone() -> None:
    def work(count: int) -> int:
        root = planned("root", 1, 0)
        children = [planned(f"child-{number}", 3, 1, root) for number in range(count)]
        assert family_progress(root).totals == (len(children), 1 + 3 * count)
        return work_of(lambda: family_progress(root))

    assert work(80) < 4.2 * work(20)


def test_a_long_chain_of_parents_does_not_recurse() -> None:
    depth = 1_100  # more than Python recurses
    chain = [planned("s0", 1, 1)]
    for number in range(1, depth):
        chain.append(planned(f"s{number}", 1, 1, chain[-1]))
    family = family_progress(chain[0])
    assert family.totals == (depth, depth)
    assert family == family_progress(chain[0])
    assert len(repr(family)) < 300
    assert len(str(family)) < 150 * depth
