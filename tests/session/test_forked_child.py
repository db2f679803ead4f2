"""A session in a forked child works, whatever the threads that did not come along were doing."""

from __future__ import annotations

from pathlib import Path

import pytest
from session_records import printed

COMMON = f"""
import os, signal, sys, threading, time, traceback
sys.path.insert(0, {str(Path(__file__).parent)!r})
from session import InProcessEventBus, Session, TransactionError, append
from session_records import Count, Note, Ping, note_session, numbers, ping, texts

def in_child(work):
    pid = os.fork()
    if not pid:
        signal.alarm(30)  # what hangs ends
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def in_thread(hold):
    entered, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=hold, args=(entered, leave))
    thread.start()
    entered.wait()
    return leave, thread

def use(session):
    heard = []
    session.bus.subscribe(Ping, heard.append)
    before = texts(session)
    session.dispatch(Note("child"))
    with session.transaction() as transaction:
        transaction.publish(ping(session, 7))
    session.register_reducer(Count, append)
    assert texts(session) == [*before, "child"], texts(session)
    assert numbers(session.select_all(Ping))[-1] == 7
    assert numbers(heard) == [7], heard
    assert texts(session.clone()) == [*before, "child"]
    child = Session(parent=session, bus=session.bus)
    child.close()

session = note_session()
session.dispatch(Note("committed"))
"""

HOLDERS = {
    "a transaction": """
def hold(entered, leave):
    with session.transaction() as transaction:
        transaction.dispatch(Note("half"))
        transaction.publish(ping(session, 1))
        entered.set()
        leave.wait()
""",
    "a subscriber": """
def hold(entered, leave):
    def slow(event):
        if event.number != 7:
            entered.set()
            leave.wait()
    session.bus.subscribe(Ping, slow)
    with session.transaction() as transaction:
        transaction.publish(ping(session, 1))
        transaction.publish(ping(session, 2))
""",
    "the bus": """
def hold(entered, leave):
    class Slow:
        def __call__(self, event): ...
        def __eq__(self, other):
            entered.set()
            leave.wait()
            return False
        __hash__ = object.__hash__
    session.bus.subscribe(Ping, Slow())
    session.bus.unsubscribe(Ping, print)
""",
}


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS.keys())
def test_a_child_works_with_the_last_commit_while_a_thread_was_inside(holder: str) -> None:
    program = """
leave, thread = in_thread(hold)
print(in_child(lambda: use(session)))
print(in_child(lambda: print(in_child(lambda: use(session)), flush=True)))
leave.set()
thread.join()
use(session)
print("done")
"""
    assert printed(COMMON + holder + program) == "0\n0\n0\ndone\n"


def test_a_fork_inside_a_transaction_goes_on_with_it_in_both_processes() -> None:
    program = """
with session.transaction() as transaction:
    transaction.dispatch(Note("before"))
    pid = os.fork()
    if not pid:
        signal.alarm(30)
    session.dispatch(Note("nested"))
    transaction.dispatch(Note("child" if not pid else "parent"))
if not pid:
    print(texts(session), flush=True)
    session.dispatch(Note("after"))
    os._exit(0 if texts(session)[-1] == "after" else 1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), texts(session))
"""
    assert printed(COMMON + program) == (
        "['committed', 'before', 'nested', 'child']\n0 ['committed', 'before', 'nested', 'parent']\n"
    )


def test_a_fork_inside_a_subscriber_goes_on_telling_in_both_processes() -> None:
    program = """
heard, pids = [], []

def fork(event):
    if event.number == 1:
        pids.append(os.fork())
        session.publish(ping(session, 3))
    heard.append(event.number)

session.bus.subscribe(Ping, fork)
with session.transaction() as transaction:
    transaction.publish(ping(session, 1))
    transaction.publish(ping(session, 2))
if not pids[0]:
    print(heard, numbers(session.select_all(Ping)), flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1]), heard, numbers(session.select_all(Ping)))
"""
    assert printed(COMMON + program) == "[1, 2, 3] [1, 2, 3]\n0 [1, 2, 3] [1, 2, 3]\n"
