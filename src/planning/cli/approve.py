"""``planning approve``: a plan that waits, and the user's decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from planning.cli.source import OneSession, StoreFile
from planning.cli.usage import Refused, bad_option
from planning.errors import printable

if TYPE_CHECKING:
    from planning.plan.commands import ApprovePlan, RejectPlan
    from planning.suite.approval import Pending


def approve(
    store: StoreFile,
    session: OneSession = None,
    *,
    reject: Annotated[
        str | None, typer.Option(metavar="REASON", help="Reject the plan: what the agent should change.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Approve the plan without a question.")] = False,
) -> None:
    """Approve or reject a plan that waits for it, while its agent runs or afterwards.

    The plan is shown, and you are asked. The decision is for the plan that was shown: where the agent has
    changed it by then, you see the new one. The exit code is 1 where nothing waits, or you rejected the plan
    when asked.
    """
    from planning.cli.opening import opened_session
    from planning.plan.commands import RejectPlan
    from planning.suite.approval import answer_approval, decision_of, pending_approval

    if reject is not None and (yes or not reject.strip()):
        raise bad_option("--reject", "omit --yes" if yes else "say what the agent should change")
    given = {"decision": "reject", "reason": reject} if reject is not None else "approve" if yes else None
    with opened_session(store, session) as found:
        decision = None
        while decision is None:
            pending = pending_approval(found)
            if pending is None:
                typer.echo("Nothing waits for approval.")
                raise typer.Exit(1)
            typer.echo(_shown(pending))
            decision = decision_of(given) or _asked()
            if not answer_approval(found, pending, decision):
                typer.echo("The plan has changed.")
                decision = None
    if isinstance(decision, RejectPlan):
        typer.echo(f"Rejected: {printable(decision.reason)}")
        raise typer.Exit(int(reject is None))
    typer.echo("Approved.")


def _shown(pending: Pending) -> str:
    waiting = f"Waiting for approval: {', '.join(pending.step_ids) or 'the plan'}"
    return "\n".join([*map(printable, pending.text.split("\n")), waiting])


def _asked() -> ApprovePlan | RejectPlan:
    """The user's decision; asked until there is one."""
    from planning.suite.approval import decision_of

    try:
        while True:
            answer = input("Type approve or reject: ").strip().lower()
            reason = input("What should the agent change? ") if answer == "reject" else ""
            decision = decision_of({"decision": answer, "reason": reason})
            if decision is not None:
                return decision
    except EOFError:
        raise Refused("no answer on standard input; nothing was decided. Give --yes or --reject") from None
