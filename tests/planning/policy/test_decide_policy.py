"""The pure functions of a policy: what it refuses, in which order, what follows, and what is then known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planning import ApprovePlan, PlanPolicy, RejectPlan, ToolValidationError
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


@pytest.mark.parametrize(
    ("command", "more", "message"),
    [
        (done(2), WAITING, "S002 waits for approval; work on another step, or ask the user to approve it"),
        (done(2), {**WAITING, "waiting": ()}, "S002 depends on S001, which is not done; do S001 first"),
        (begin(2), NOTHING, "at most 1 step may be in progress; mark S001 done, blocked or pending first"),
        (done(2), NOTHING, "S002 needs evidence; call a tool that does the work of S002 first"),
        (done(2), {**NOTHING, "evidence": None},
         "S002 needs evidence, which this tool does not take; leave this mark to an agent whose tool takes "
         "it"),
        (SetupPlan("x", (NewPlanStep("a"),)), {"needs": [["none"]], "clears": False},
         "S001 to S004 are not done; finish the plan before you set up another"),
    ],
)  # fmt: skip
def test_a_command_is_refused_by_the_first_rule_that_the_page_names(
    command: Any, more: dict[str, Any], message: str
) -> None:
    assert decided(POLICY, command, calls="work!", **more) == message


# Waiting, order and replacement


@pytest.mark.parametrize(
    ("policy", "command", "facts", "outcome"),
    [
        ({}, begin(2, 3), {"waiting": ("S002", "S003", "S009")},
         "S002 to S003 wait for approval; work on another step, or ask the user to approve it"),
        ({}, MarkStep("S002", "blocked"), {"waiting": ("S002",)}, []),
        ({"dependencies": True}, begin(4), {"depends_on": {"S004": ("S002", "S003"), "S002": ("S001",)}},
         "S004 depends on S002 to S003, which are not done; do S001 first"),
        ({"dependencies": True}, done(4), {"depends_on": {"S004": ("S003", "S009"), "S003": ("S002",)}},
         "S004 depends on S003, which is not done; do S002 first"),
        ({"dependencies": True}, done(4), {"depends_on": {"S004": ("S009",)}}, []),
        ({"dependencies": True}, done(3, 4), {"depends_on": {"S004": ("S003",)}}, []),
        ({"dependencies": True}, done(4, 3), {"depends_on": {"S004": ("S003",)}},
         "S004 depends on S003, which is not done; do S003 first"),
        ({}, done(4), {"depends_on": {"S004": ("S003",)}}, []),
        ({"most_in_progress": 2}, begin(2), {}, []),
        ({"most_in_progress": 2}, begin(2, 3), {},
         "at most 2 steps may be in progress; mark S001 to S002 done, blocked or pending first"),
        ({"most_in_progress": 1}, MarkSteps((*done(1).marks, *begin(2).marks)), {}, []),
    ],
)  # fmt: skip
def test_marks_keep_to_approval_and_to_their_order(
    policy: dict[str, Any], command: Any, facts: dict[str, Any], outcome: Any
) -> None:
    assert decided(policy, command, **facts) == outcome


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


def proof(number: int, *evidence: str, verified: bool = False, **tools: str) -> list[RecordEvidence]:
    return [RecordEvidence(f"S00{number}", Proof(evidence, verified, tools))]


WORK = "send evidence with a call made since it began:"
FIRST = "call a tool that does the work of S002 first"
TEXT = f"{FIRST}, or send text that shows it"
VERIFY = {"evidence": "required", "verify": lambda *_: True}
UNIQUE = {"evidence": "unique"}
REQUIRED = {"evidence": "required"}


@pytest.mark.parametrize(
    ("policy", "calls", "sent", "more", "outcome"),
    [
        (REQUIRED, "a b! c d e", (), {}, f"S002 needs evidence; {WORK} C3 (c), C4 (d), C5 (e)"),
        (REQUIRED, "a b c d", (), {"began": {"S002": 3}}, f"S002 needs evidence; {WORK} C4 (d)"),
        (REQUIRED, "a@3 b@2 c@1", (), {"began": {"S002": 2}}, f"S002 needs evidence; {WORK} C1 (a), C2 (b)"),
        (REQUIRED, f"{LONG} b!", ("C2",), {}, f"C2 (b) failed; {WORK} C1 ({LONG[:77]}...)"),
        (REQUIRED, f"{LONG}!", ("C1",), {}, f"C1 ({LONG[:77]}...) failed; {FIRST}"),
        (VERIFY, "", (), {}, f"S002 needs evidence; {TEXT}"),
        (VERIFY, "a", ("no",), {},
         f"'no' is not evidence for S002: the host does not accept it; {WORK} C1 (a)"),
        (VERIFY, "", ("c2",), {}, f"'c2' is not evidence for S002: no call has this id; {TEXT}"),
        (REQUIRED, "", ("C0",), {}, f"'C0' is not evidence for S002: no call has this id; {FIRST}"),
        (REQUIRED, "a b@0", ("C2",), {"began": {"S002": 1}}, f"C2 (b) was made before S002 began; {FIRST}"),
        (REQUIRED, "a b", ("C02", "c1", " C2 "), {}, proof(2, "C2", "C1", C2="b", C1="a")),
        (REQUIRED, "a#x b#x c#C1", ("x",), {}, proof(2, "C2", C2="b")),
        (REQUIRED, "a#C3 b#x c#C1", (" C1",), {}, proof(2, "C3", C3="c")),
        (REQUIRED, "a#C3 b#x", ("C3",), {}, proof(2, "C1", C1="a")),
        (REQUIRED, "a#C3 b#x c", ("C3",), {}, proof(2, "C3", C3="c")),
        (REQUIRED, "a b", ("C1", "C2"), {"began": {"S002": 1}},
         f"C1 (a) was made before S002 began; {WORK} C2 (b)"),
        (UNIQUE, "a b", ("C2", "C1"), {"proofs": {"S001": Proof(("C1",))}},
         f"C1 (a) is already the evidence of S001; {WORK} C2 (b)"),
        (UNIQUE, "a! b", ("C1",), {"proofs": {"S001": Proof(("C1",))}},
         f"C1 (a) is already the evidence of S001; {WORK} C2 (b)"),
        (UNIQUE, "a b", ("C1",), {"proofs": {"S001": Proof(("C1",))}, "began": {"S002": 1}},
         f"C1 (a) was made before S002 began; {WORK} C2 (b)"),
        (VERIFY, "a", ("yes", "C1"), {"accepted": Accepted({"S002": S2}, frozenset({("S002", "yes")}))},
         proof(2, "yes", "C1", verified=True, C1="a")),
        (VERIFY, "", ("yes",), {"accepted": Accepted({"S002": S2}, frozenset({("S003", "yes")}))},
         f"'yes' is not evidence for S002: the host does not accept it; {TEXT}"),
        *[
            (VERIFY, "", ("yes",), {"accepted": Accepted({"S002": other}, frozenset({("S002", "yes")}))},
             "S002 changed while its evidence was checked; read the plan, and mark it again")
            for other in (replace(S2, title="Other"), replace(S2, details="Other"))
        ],
        (VERIFY, "", ("yes",),
         {"accepted": Accepted({"S002": replace(S2, status="done")}, frozenset({("S002", "yes")}))},
         proof(2, "yes", verified=True)),
        (REQUIRED, "", ("x" * 99,), {},
         f"'{'x' * 37}...' is not evidence for S002: no call has this id; {FIRST}"),
        (REQUIRED, "a", ("C1",) * 10, {}, proof(2, "C1", C1="a")),
        (REQUIRED, "a", ("C1",) * 11, {}, "11 pieces of evidence for S002; send at most 10"),
        (REQUIRED, "a", ("C1", " "), {}, "evidence[1]: blank; send 1 to 512 characters"),
    ],
)  # fmt: skip
def test_calls_and_texts_prove_a_step(
    policy: dict[str, Any], calls: str, sent: tuple[str, ...], more: dict[str, Any], outcome: Any
) -> None:
    assert decided(policy, MarkStep("S002", "done"), calls=calls, evidence=[sent], **more) == outcome


@pytest.mark.parametrize(
    ("marks", "evidence", "outcome"),
    [
        (done(2, 3), [("C1",), ("C2",)], proof(2, "C1", C1="a") + proof(3, "C2", C2="b")),
        (done(2, 3), [("C1",), ("C1",)],
         f"C1 (a) is already the evidence of S002; {WORK} C2 (b)"),
        ((*done(2).marks, *begin(2).marks), [("C1",), ()], []),
        ((MarkStep("S001", "pending"), *done(2).marks), [(), ("C3",)], proof(2, "C3", C3="c")),
        ((*begin(2).marks, *done(2).marks), [(), ("C1",)],
         "S002 cannot begin and end in one call; mark it in_progress, do its work, and then mark it done"),
    ],
)  # fmt: skip
def test_each_of_several_marks_is_proved_after_those_before_it(
    marks: Any, evidence: list[tuple[str, ...]], outcome: Any
) -> None:
    several = marks if isinstance(marks, MarkSteps) else MarkSteps(marks)
    proofs = {"S001": Proof(("C3",))}
    assert decided(UNIQUE, several, calls="a b c", evidence=evidence, proofs=proofs) == outcome


# Dependencies of new steps


def added(*titles: str) -> AddStep:
    return AddStep(tuple(map(NewPlanStep, titles)))


REMEDY = "use an id, a title, or a place in this call, from 1"


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        ([[], []], []),
        ([["Look"], [1]], {"S008": ("S001",), "S009": ("S008",)}),
        ([[], ["s3", 3, "S003", " S003 ", "Step 3"]], {"S009": ("S003",)}),
        ([["02"], []], {"S008": ("S009",)}),
        ([["s9"], []], {"S008": ("S009",)}),
        ([["9" * 5_000], []],
         f"steps[0].depends_on: no step is '{'9' * 37}...'; {REMEDY}"),
        ([["a"], []], "S008 cannot depend on itself; name another step by its id or its title"),
        ([[2], [1]], "these steps wait for each other: S008 -> S009 -> S008; remove one of the dependencies"),
        ([["10"], [0, "x" * 99]],
         f"3 problems:\n- steps[0].depends_on: no step is '10'; {REMEDY}\n- steps[1].depends_on: no step is "
         f"'0'; {REMEDY}\n- steps[1].depends_on: no step is '{'x' * 37}...'; {REMEDY}"),
        ([["twice"], []], "steps[0].depends_on: 'twice' is S005, S007; use one of these ids"),
        ([["cafe\u0301"], []], {"S008": ("S006",)}),
    ],
)  # fmt: skip
def test_new_steps_depend_on_ids_titles_and_places(given: Any, outcome: Any) -> None:
    titles = {5: "twice", 6: "caf\u00e9", 7: "twice"}
    more = tuple(PlanStep(f"S00{number}", title, None, "pending") for number, title in titles.items())
    plan = replace(PLAN, steps=(*PLAN.steps, *more))
    wanted = [SetDependencies(outcome)] if isinstance(outcome, dict) else outcome
    assert decided({}, added("a", "b"), plan, needs=given, highest=7) == wanted


def test_the_steps_of_a_new_plan_are_named_from_the_first_on() -> None:
    command = SetupPlan("Again", (NewPlanStep("a"), NewPlanStep("b")))
    assert decided({}, command, needs=[[], ["a"]]) == [SetDependencies({"S002": ("S001",)})]
    assert decided({}, command, needs=[[], ["Look"]]) == (
        f"initial_steps[1].depends_on: no step is 'Look'; {REMEDY}"
    )


# Approval


@pytest.mark.parametrize(
    ("command", "approved", "rejected"),
    [
        (SetupPlan("x"), (), ()),
        (added("a", "b"), ("S005", "S006"), ()),
        (UpdateStep("S002", "Other"), ("S002",), ()),
        (UpdateStep("S002", None, "More"), None, ()),
        (UpdateStep("S002", "Step 2"), None, None),
        (RemoveStep("S002"), None, ()),
        (ClearPlan(), None, ()),
        (MoveStep("S002", 0), None, None),
        (done(2), None, None),
    ],
)
def test_the_user_is_asked_about_what_the_agent_changed(
    command: Any, approved: tuple[str, ...] | None, rejected: tuple[str, ...] | None
) -> None:
    def asked(policy: dict[str, Any], approval: str) -> Any:
        follows = decided(policy, command, approval=approval)
        return follows[0].step_ids if follows else None

    for policy in ({"approval": True}, {}):  # another section may have asked for it
        assert asked(policy, "approved") == approved
        assert asked(policy, "rejected") == rejected
    assert asked({"approval": True}, "none") == approved
    assert decided({}, command, approval="none") == []


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


@pytest.mark.parametrize(
    ("own", "others", "demanded"),
    [
        ({}, {"evidence": "required", "verify": one}, {"evidence": "required", "verify": one}),
        ({"evidence": "required", "verify": one}, {"approval": True},
         {"evidence": "required", "verify": one, "approval": True}),
        ({"evidence": "required", "verify": one}, {"evidence": "required"}, {"evidence": "required"}),
        ({"evidence": "required"}, {"evidence": "required", "verify": one}, {"evidence": "required"}),
        ({"evidence": "required", "verify": one}, {"evidence": "required", "verify": two},
         {"evidence": "required", "verify": one}),
        ({"stale_after": 3}, {}, {"stale_after": 3}),
        ({}, {"stale_after": 3}, {"stale_after": 3}),
        ({"stale_after": 3}, {"stale_after": 2}, {"stale_after": 2}),
        ({"most_in_progress": 1}, {"most_in_progress": 2}, {"most_in_progress": 1}),
        ({"most_in_progress": 2}, {"most_in_progress": 1}, {"most_in_progress": 1}),
        ({"finish_gate": 3}, {}, {"finish_gate": 3}),
        ({"finish_gate": 2}, {"finish_gate": 3}, {"finish_gate": 3}),
        ({"text": "unicode", "tools": ("mark",)}, {"batch_marks": True, "agent_edits": True},
         {"text": "unicode", "tools": ("mark",)}),
    ],
)  # fmt: skip
def test_of_two_policies_the_stricter_demand_holds_and_the_tools_are_each_its_own(
    own: dict[str, Any], others: dict[str, Any], demanded: dict[str, Any]
) -> None:
    assert strictest(PlanPolicy(**own), PlanPolicy(**others)) == PlanPolicy(**demanded)
    assert strictest(PlanPolicy(**own), None) == PlanPolicy(**own)


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
CHANGED = {"changed": 4, "is_noticed": False, "asked": 0}
BEGUN = {**CHANGED, "begun": 6, "began": {**KNOWN.began, "S001": 6}, "proofs": {"S003": PROOF}}
STEPS = tuple(PlanStep(step_id, "x", None, "pending") for step_id in ("S001", "S007"))


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        (EvidenceCall("work", None, success=False), {"calls": 5}),
        (RenumberSteps(2, 4),
         {**CHANGED, "highest": 5, "begun": 6, "began": {**KNOWN.began, "S004": 6, "S005": 6}}),
        (UpdateStep("S001", "x"), CHANGED),
        (MoveStep("S001", 1), CHANGED),
        (MarkStep("S002", "done"), CHANGED),
        (MarkStep("S001", "blocked"), {**CHANGED, "proofs": {"S003": PROOF}}),
        (MarkStep("S001", "in_progress"), BEGUN),
        (MarkSteps((MarkStep("S001", "in_progress"), MarkStep("S002", "done"))), BEGUN),
        (MarkSteps((MarkStep("S001", "pending"), MarkStep("S003", "pending"))), {**CHANGED, "proofs": {}}),
        (ClearPlan(), {**CHANGED, "began": {}, "depends_on": {}, "proofs": {}, "waiting": ()}),
        (RemoveStep("S003"),
         {**CHANGED, "began": {"S001": 5, "S002": 0}, "depends_on": {"S002": ("S001",)},
          "proofs": {"S001": PROOF}, "waiting": ("S002",)}),
        (RemoveStep("S001"),
         {**CHANGED, "began": {"S002": 0, "S003": 0}, "depends_on": {"S002": ("S003",)},
          "proofs": {"S003": PROOF}}),
        (SetDependencies({"S003": ("S002",)}), {"depends_on": {**KNOWN.depends_on, "S003": ("S002",)}}),
        (RecordEvidence("S002", PROOF), {"proofs": {**KNOWN.proofs, "S002": PROOF}}),
        (RequestApproval(), {"approval": "waiting", "reason": None}),
        (RequestApproval(("S004",)), {"approval": "waiting", "reason": None}),
        (ApprovePlan(), {"approval": "approved", "reason": None, "waiting": ()}),
        (RejectPlan("no"), {"reason": "no"}),
        (TakeNotice(), {}),
        (AskToFinish(("S001",), let_go=False), {"asked": 3}),
        (AskToFinish(("S001",), let_go=False, is_new_turn=True), {"asked": 1}),
    ],
)  # fmt: skip
def test_what_is_known_of_a_plan_follows_each_command(command: Any, changes: dict[str, Any]) -> None:
    assert reduce_facts((KNOWN,), command) == (replace(KNOWN, **changes),)
    assert reduce_facts((), command) == ()


@pytest.mark.parametrize(
    ("facts", "command", "after"),
    [
        (KNOWN, SetupPlan("x"), PlanFacts(calls=4, changed=4, begun=5)),
        (KNOWN, Plan("x", "active", STEPS),
         PlanFacts(highest=7, calls=4, changed=4, begun=6, began={"S001": 6, "S007": 6})),
        (PlanFacts(approval="approved", waiting=("S002",)), RequestApproval(("S003", "S002")),
         PlanFacts(approval="approved", waiting=("S002", "S003"))),
        (PlanFacts(approval="waiting", waiting=("S002",)), RequestApproval(("S003",)),
         PlanFacts(approval="waiting", waiting=("S002",))),
        (PlanFacts(waiting=("S002",)), ApprovePlan(), PlanFacts(approval="approved")),
        (PlanFacts(), ApprovePlan(), PlanFacts()),
        (PlanFacts(approval="waiting"), ApprovePlan(), PlanFacts(approval="approved")),
        (PlanFacts(), RejectPlan("no"), PlanFacts(approval="rejected", reason="no")),
        (PlanFacts(), TakeNotice(), PlanFacts(is_noticed=True)),
        (PlanFacts(calls=2, began={"S001": 0}), MarkStep("S002", "in_progress"),
         PlanFacts(calls=2, changed=2, begun=2, began={"S001": 0, "S002": 2})),
        (PlanFacts(calls=2, began={"S001": 2}), MarkStep("S002", "in_progress"),
         PlanFacts(calls=2, changed=2, begun=3, began={"S001": 2, "S002": 3})),
    ],
)  # fmt: skip
def test_a_new_plan_and_a_decision_change_what_is_known(
    facts: PlanFacts, command: Any, after: PlanFacts
) -> None:
    assert reduce_facts((facts,), command) == (after,)
