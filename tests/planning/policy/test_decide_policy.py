"""The pure functions of a policy: what it refuses, in which order, what follows, and what is then known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import attrs
import pytest
from syrupy.assertion import SnapshotAssertion

from planning import ApprovePlan, PlanPolicy, RejectPlan, ToolValidationError
from planning.errors import cut
from planning.plan.commands import (
    AddStep,
    ClearPlan,
    MarkStep,
    MarkSteps,
    MoveStep,
    NewPlanStep,
    RemoveStep,
    RenumberSteps,
    SetupPlan,
    UpdateStep,
)
from planning.plan.facts import EvidenceCall, PlanFacts, Proof
from planning.plan.model import Plan, PlanStep
from planning.policy.decide import Extras, decide
from planning.policy.evidence import Accepted
from planning.policy.policy import strictest
from planning.policy.reducers import (
    AskToFinish,
    RecordEvidence,
    RequestApproval,
    SetDependencies,
    TakeNotice,
    reduce_facts,
)

S1 = PlanStep("S001", "Look", None, "in_progress")
S2, S3, S4 = (PlanStep(f"S00{number}", f"Step {number}", "Long", "pending") for number in (2, 3, 4))
PLAN = Plan("Ship it", "active", (S1, S2, S3, S4))
LONG = "x" * 81


def decided(
    policy: PlanPolicy | dict[str, Any],
    command: Any,
    plan: Plan | None = PLAN,
    calls: str = "",
    needs: Any = (),
    **more: Any,
) -> Any:
    """What follows of a command, or why it is refused.

    A call is the name of its tool, with ``!`` if it failed, ``#id`` and ``@moment`` if it has these. What
    else is given is of the facts, or of what the agent sent.
    """
    made = []
    for each in calls.split():
        text, _, began = each.partition("@")
        text, _, call_id = text.partition("#")
        moment = int(began) if began else None
        made.append(EvidenceCall(text.strip("!"), call_id or None, not text.endswith("!"), moment))
    known = {name: more.pop(name) for name in [*more] if name in PlanFacts.__slots__}
    facts, extras = PlanFacts(**{"highest": 4, **known}), Extras(depends_on=needs, **more)
    try:
        demands = policy if isinstance(policy, PlanPolicy) else PlanPolicy(**policy)
        return decide(demands, facts, plan, command, extras, made)
    except ToolValidationError as refused:
        return str(refused)


def listed(cases: list[tuple[Any, Any]]) -> str:
    """What each call makes, below what it is about."""
    return "\n".join(f"{about}\n    {outcome}\n" for about, outcome in cases)


def begin(*numbers: int) -> MarkSteps:
    return MarkSteps(tuple(MarkStep(f"S00{number}", "in_progress") for number in numbers))


def done(*numbers: int) -> MarkSteps:
    return MarkSteps(tuple(MarkStep(f"S00{number}", "done") for number in numbers))


# The order of the rules

POLICY = PlanPolicy(
    evidence="required", approval=True, replace="refuse_unfinished", dependencies=True, most_in_progress=1
)
NOTHING = {"approval": "approved", "evidence": [()]}
WAITING = {**NOTHING, "depends_on": {"S002": ("S001",)}, "waiting": ("S002",)}


ORDERED: list[tuple[Any, dict[str, Any]]] = [
    (done(2), WAITING),
    (done(2), {**WAITING, "waiting": ()}),
    (begin(2), NOTHING),
    (done(2), NOTHING),
    (done(2), {**NOTHING, "evidence": None}),
    (SetupPlan("x", (NewPlanStep("a"),)), {"needs": [["none"]], "clears": False}),
]


def test_a_command_is_refused_by_the_first_rule_that_the_page_names(snapshot: SnapshotAssertion) -> None:
    said = [(command, decided(POLICY, command, calls="work!", **more)) for command, more in ORDERED]
    assert listed(said) == snapshot


# Waiting, order and replacement


IN_ORDER: dict[str, Any] = {"dependencies": True}
MARKED: list[tuple[dict[str, Any], Any, dict[str, Any]]] = [
    ({}, begin(2, 3), {"waiting": ("S002", "S003", "S009")}),
    ({}, MarkStep("S002", "blocked"), {"waiting": ("S002",)}),
    (IN_ORDER, begin(4), {"depends_on": {"S004": ("S002", "S003"), "S002": ("S001",)}}),
    (IN_ORDER, done(4), {"depends_on": {"S004": ("S003", "S009"), "S003": ("S002",)}}),
    (IN_ORDER, done(4), {"depends_on": {"S004": ("S009",)}}),
    (IN_ORDER, done(3, 4), {"depends_on": {"S004": ("S003",)}}),
    (IN_ORDER, done(4, 3), {"depends_on": {"S004": ("S003",)}}),
    ({}, done(4), {"depends_on": {"S004": ("S003",)}}),
    ({"most_in_progress": 2}, begin(2), {}),
    ({"most_in_progress": 2}, begin(2, 3), {}),
    ({"most_in_progress": 1}, MarkSteps((*done(1).marks, *begin(2).marks)), {}),
]


def test_marks_keep_to_approval_and_to_their_order(snapshot: SnapshotAssertion) -> None:
    said = [
        ((policy, command, facts), decided(policy, command, **facts)) for policy, command, facts in MARKED
    ]
    assert listed(said) == snapshot


@pytest.mark.parametrize(
    ("plan", "clears", "outcome"),
    [
        (None, True, []),
        (replace(PLAN, status="completed"), True, []),
        (replace(PLAN, steps=(replace(S1, status="done"),)), True, []),
        (replace(PLAN, steps=(replace(S1, status="done"), replace(S2, status="blocked"))), True,
         "S002 is not done; finish the plan, or drop it with planning_clear_plan before you set up another"),
    ],
)  # fmt: skip
def test_a_plan_with_open_steps_is_not_replaced(plan: Plan | None, clears: bool, outcome: Any) -> None:
    assert decided({"replace": "refuse_unfinished"}, SetupPlan("x"), plan, clears=clears) == outcome
    assert decided({}, SetupPlan("x"), plan) == []


# Evidence


VERIFY = {"evidence": "required", "verify": lambda *_: True}
UNIQUE = {"evidence": "unique"}
REQUIRED = {"evidence": "required"}
ONE_PROOF = {"proofs": {"S001": Proof(("C1",))}}


def accepted(step: PlanStep, of: str = "S002") -> dict[str, Any]:
    """What a host accepted for a step as it was then."""
    return {"accepted": Accepted({"S002": step}, frozenset({(of, "yes")}))}


PROVED: list[tuple[dict[str, Any], str, tuple[str, ...], dict[str, Any]]] = [
    (REQUIRED, "a b! c d e", (), {}),
    (REQUIRED, "a b c d", (), {"began": {"S002": 3}}),
    (REQUIRED, "a@3 b@2 c@1", (), {"began": {"S002": 2}}),
    (REQUIRED, f"{LONG} b!", ("C2",), {}),
    (REQUIRED, f"{LONG}!", ("C1",), {}),
    (VERIFY, "", (), {}),
    (VERIFY, "a", ("no",), {}),
    (VERIFY, "", ("c2",), {}),
    (REQUIRED, "", ("C0",), {}),
    (REQUIRED, "a b@0", ("C2",), {"began": {"S002": 1}}),
    (REQUIRED, "a b", ("C02", "c1", " C2 "), {}),
    (REQUIRED, "a#x b#x c#C1", ("x",), {}),
    (REQUIRED, "a#C3 b#x c#C1", (" C1",), {}),
    (REQUIRED, "a#C3 b#x", ("C3",), {}),
    (REQUIRED, "a#C3 b#x c", ("C3",), {}),
    (REQUIRED, "a b", ("C1", "C2"), {"began": {"S002": 1}}),
    (UNIQUE, "a b", ("C2", "C1"), ONE_PROOF),
    (UNIQUE, "a! b", ("C1",), ONE_PROOF),
    (UNIQUE, "a b", ("C1",), {**ONE_PROOF, "began": {"S002": 1}}),
    (VERIFY, "a", ("yes", "C1"), accepted(S2)),
    (VERIFY, "", ("yes",), accepted(S2, "S003")),
    (VERIFY, "", ("yes",), accepted(replace(S2, title="Other"))),
    (VERIFY, "", ("yes",), accepted(replace(S2, details="Other"))),
    (VERIFY, "", ("yes",), accepted(replace(S2, status="done"))),
    (REQUIRED, "", ("x" * 99,), {}),
    (REQUIRED, "a", ("C1",) * 10, {}),
    (REQUIRED, "a", ("C1",) * 11, {}),
    (REQUIRED, "a", ("C1", " "), {}),
]


def test_calls_and_texts_prove_a_step(snapshot: SnapshotAssertion) -> None:
    mark = MarkStep("S002", "done")
    said = [
        ((policy["evidence"], calls, sent), decided(policy, mark, calls=calls, evidence=[sent], **more))
        for policy, calls, sent, more in PROVED
    ]
    assert listed(said) == snapshot


SEVERAL: list[tuple[tuple[MarkStep, ...], list[tuple[str, ...]]]] = [
    (done(2, 3).marks, [("C1",), ("C2",)]),
    (done(2, 3).marks, [("C1",), ("C1",)]),
    ((*done(2).marks, *begin(2).marks), [("C1",), ()]),
    ((MarkStep("S001", "pending"), *done(2).marks), [(), ("C3",)]),
    ((*begin(2).marks, *done(2).marks), [(), ("C1",)]),
]


def test_each_of_several_marks_is_proved_after_those_before_it(snapshot: SnapshotAssertion) -> None:
    known: dict[str, Any] = {"calls": "a b c", "proofs": {"S001": Proof(("C3",))}}
    said = [
        ((marks, evidence), decided(UNIQUE, MarkSteps(marks), evidence=evidence, **known))
        for marks, evidence in SEVERAL
    ]
    assert listed(said) == snapshot


# Dependencies of new steps


def added(*titles: str) -> AddStep:
    return AddStep(tuple(map(NewPlanStep, titles)))


NEEDS: list[Any] = [
    [[], []],
    [["Look"], [1]],
    [[], ["s3", 3, "S003", " S003 ", "Step 3"]],
    [["02"], []],
    [["s9"], []],
    [["9" * 5_000], []],
    [["a"], []],
    [[2], [1]],
    [["10"], [0, "x" * 99]],
    [["twice"], []],
    [["cafe\u0301"], []],
]


def test_new_steps_depend_on_ids_titles_and_places(snapshot: SnapshotAssertion) -> None:
    titles = {5: "twice", 6: "caf\u00e9", 7: "twice"}
    more = tuple(PlanStep(f"S00{number}", title, None, "pending") for number, title in titles.items())
    plan = replace(PLAN, steps=(*PLAN.steps, *more))
    said: list[tuple[Any, Any]] = [
        (cut(ascii(needs), 80), decided({}, added("a", "b"), plan, needs=needs, highest=7)) for needs in NEEDS
    ]
    again = SetupPlan("Again", (NewPlanStep("a"), NewPlanStep("b")))
    said += [((again, needs), decided({}, again, needs=needs)) for needs in ([[], ["a"]], [[], ["Look"]])]
    assert listed(said) == snapshot


# Approval


ASKED: list[Any] = [
    *(SetupPlan("x"), added("a", "b"), UpdateStep("S002", "Other"), UpdateStep("S002", None, "More")),
    *(UpdateStep("S002", "Step 2"), RemoveStep("S002"), ClearPlan(), MoveStep("S002", 0), done(2)),
]


def test_the_user_is_asked_about_what_the_agent_changed(snapshot: SnapshotAssertion) -> None:
    said = []
    for command in ASKED:
        of_approval = {
            approval: decided({"approval": True}, command, approval=approval)
            for approval in ("approved", "rejected", "none")
        }
        for approval in ("approved", "rejected"):  # another section may have asked for it
            assert decided({}, command, approval=approval) == of_approval[approval]
        assert decided({}, command, approval="none") == []
        said.append((command, of_approval))
    assert listed(said) == snapshot


def test_the_user_is_asked_again_when_a_rejected_plan_without_steps_is_cleared() -> None:
    empty = replace(PLAN, steps=())
    assert decided({}, ClearPlan(), empty, approval="rejected") == [RequestApproval()]


def test_what_follows_comes_in_the_order_in_which_it_is_dispatched() -> None:
    assert decided(POLICY, added("Test", "Tell"), needs=[["Look"], [1]], highest=7, approval="approved") == [
        SetDependencies({"S008": ("S001",), "S009": ("S008",)}),
        RequestApproval(("S008", "S009")),
    ]


# Two policies


def one(_step: object, _text: str) -> bool:
    return True


def two(_step: object, _text: str) -> bool:
    return False


PAIRS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"evidence": "required", "verify": one}),
    ({"evidence": "required", "verify": one}, {"approval": True}),
    ({"evidence": "required", "verify": one}, {"evidence": "required"}),
    ({"evidence": "required"}, {"evidence": "required", "verify": one}),
    ({"evidence": "required", "verify": one}, {"evidence": "required", "verify": two}),
    ({"stale_after": 3}, {}),
    ({}, {"stale_after": 3}),
    ({"stale_after": 3}, {"stale_after": 2}),
    ({"most_in_progress": 1}, {"most_in_progress": 2}),
    ({"most_in_progress": 2}, {"most_in_progress": 1}),
    ({"finish_gate": 3}, {}),
    ({"finish_gate": 2}, {"finish_gate": 3}),
    ({"text": "unicode", "tools": ("mark",)}, {"batch_marks": True, "agent_edits": True}),
]


def test_of_two_policies_the_stricter_demand_holds_and_the_tools_are_each_its_own(
    snapshot: SnapshotAssertion,
) -> None:
    def shown(policy: PlanPolicy) -> dict[str, Any]:
        values = {each.name: getattr(policy, each.name) for each in attrs.fields(PlanPolicy)}
        changed = {name: value for name, value in values.items() if value != getattr(PlanPolicy(), name)}
        return {name: getattr(value, "__name__", value) for name, value in changed.items()}

    said = []
    for own, others in PAIRS:
        ours, theirs = PlanPolicy(**own), PlanPolicy(**others)
        assert strictest(ours, None) == ours
        said.append(((shown(ours), shown(theirs)), shown(strictest(ours, theirs))))
    assert listed(said) == snapshot


# What is known of a plan

PROOF = Proof(("C1",), tools={"C1": "work"})
KNOWN = PlanFacts(
    highest=3,
    calls=4,
    changed=1,
    begun=5,
    began={"S001": 5, "S002": 0, "S003": 0},
    depends_on={"S002": ("S001", "S003"), "S003": ("S001",)},
    proofs={"S001": PROOF, "S003": PROOF},
    approval="rejected",
    reason="too long",
    waiting=("S002", "S003"),
    is_noticed=True,
    asked=2,
)
STEPS = tuple(PlanStep(step_id, "x", None, "pending") for step_id in ("S001", "S007"))
ONE_WAITS = PlanFacts(approval="waiting", waiting=("S002",))
FOLLOWED: list[tuple[PlanFacts, Any]] = [
    *((KNOWN, command) for command in (
        EvidenceCall("work", None, success=False),
        RenumberSteps(2, 4),
        UpdateStep("S001", "x"),
        MoveStep("S001", 1),
        MarkStep("S002", "done"),
        MarkStep("S001", "blocked"),
        MarkStep("S001", "in_progress"),
        MarkSteps((MarkStep("S001", "in_progress"), MarkStep("S002", "done"))),
        MarkSteps((MarkStep("S001", "pending"), MarkStep("S003", "pending"))),
        ClearPlan(),
        RemoveStep("S003"),
        RemoveStep("S001"),
        SetDependencies({"S003": ("S002",)}),
        RecordEvidence("S002", PROOF),
        RequestApproval(),
        RequestApproval(("S004",)),
        ApprovePlan(),
        RejectPlan("no"),
        TakeNotice(),
        AskToFinish(("S001",), let_go=False),
        AskToFinish(("S001",), let_go=False, is_new_turn=True),
        SetupPlan("x"),
        Plan("x", "active", STEPS),
    )),
    (PlanFacts(approval="approved", waiting=("S002",)), RequestApproval(("S003", "S002"))),
    (ONE_WAITS, RequestApproval(("S003",))),
    (PlanFacts(waiting=("S002",)), ApprovePlan()),
    (PlanFacts(), ApprovePlan()),
    (PlanFacts(approval="waiting"), ApprovePlan()),
    (PlanFacts(), RejectPlan("no")),
    (PlanFacts(), TakeNotice()),
    (PlanFacts(calls=2, began={"S001": 0}), MarkStep("S002", "in_progress")),
    (PlanFacts(calls=2, began={"S001": 2}), MarkStep("S002", "in_progress")),
]  # fmt: skip


def test_what_is_known_of_a_plan_follows_each_command(snapshot: SnapshotAssertion) -> None:
    said = []
    for facts, command in FOLLOWED:
        (after,) = reduce_facts((facts,), command)
        names = [name for name in PlanFacts.__slots__ if getattr(after, name) != getattr(facts, name)]
        known = "what is known" if facts is KNOWN else facts
        said.append(((known, command), {name: getattr(after, name) for name in names}))
        if not isinstance(command, Plan | SetupPlan):
            assert reduce_facts((), command) == ()
    assert listed(said) == snapshot
