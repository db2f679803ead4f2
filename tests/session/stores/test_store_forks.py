"""A process with an open store may fork at any moment: what was acknowledged on either side is kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from postgres_server import schema_for, shared_server
from session_records import printed

ROUNDS = int(os.environ.get("FORKS", "1"))  # of each kind; `make soak` sets many
WRITES = 50

COMMON = f"""
import multiprocessing, os, subprocess, sys, threading, time
sys.path[:0] = {[str(each) for each in Path(__file__).parents[:2]]!r}
import served_calls
from session import Session, TransactionError, append
from session_records import Note

WRITES = {WRITES}
path, *place = sys.argv[1:]

def opened(session_id="run-7"):
    session = Session(session_id=session_id, store=served_calls.opened(place, 30))
    session.register_reducer(Note, append)
    return session

def write(session, name, count=WRITES):
    for number in range(count):
        session.dispatch(Note(f"{{name}} {{number}}"))
"""

WRITER = f"""{COMMON}
session = opened()
open(path + ".go", "w").close()
write(session, "process")
"""

LISTER = f"""{COMMON}
for _ in range(20):
    store = served_calls.opened(place, 30)
    assert {{str(each.session_id) for each in store.sessions()}} >= {{"run-7"}}
    store.close()
"""

ROUND = '''
import signal
is_beside = False
session = opened()
session.dispatch(Note("before"))
other = opened("other")
expected = session.version

def in_child(work):
    pid = os.fork()
    if not pid:
        signal.alarm(60)  # what hangs ends
        try:
            work()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return pid

def child():
    while is_beside and not os.path.exists(path + ".go"):
        time.sleep(0.001)
    write(session, "child")
    write(other, "child", 1)

def ended(pid):
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

def beside():
    """A process that writes at the same time as the children."""
    global is_beside
    is_beside = True
    return subprocess.Popen([sys.executable, "-c", writer, path, *place])
'''

KINDS = {
    "closed": """
other.store.close()
pid = in_child(child)
session.store.close()
process = beside()
ended(pid)
assert process.wait() == 0
expected += 2 * WRITES
""",
    "still writing": """
process = beside()
pid = in_child(child)
write(session, "parent")
ended(pid)
assert process.wait() == 0
expected += 3 * WRITES
""",
    "opened anew": """
process = beside()
pid = in_child(child)
session = opened()
write(session, "parent")
ended(pid)
assert process.wait() == 0
expected += 3 * WRITES
""",
    "another thread writes": """
stop, written = threading.Event(), []

def write_on():
    while not stop.is_set():
        session.dispatch(Note("thread"))
        written.append(1)

thread = threading.Thread(target=write_on)
thread.start()
process = beside()
pids = [in_child(child) for _ in range(3)]
for pid in pids:
    ended(pid)
assert process.wait() == 0
stop.set()
thread.join()
expected += 4 * WRITES + len(written)
""",
    "another thread is in a transaction": """
begun, go = threading.Event(), threading.Event()

def hold():
    with session.transaction() as transaction:
        transaction.dispatch(Note("held"))
        begun.set()
        go.wait(60)

thread = threading.Thread(target=hold)
thread.start()
begun.wait()
pid = in_child(child)  # waits for the lock, which is still the thread's
time.sleep(0.05)
go.set()
thread.join()
process = beside()
ended(pid)
assert process.wait() == 0
expected += 2 * WRITES + 1
""",
    "its own transaction": """
def refused():
    try:
        transaction.__exit__(None, None, None)
    except TransactionError as error:
        assert str(error) == "this process was forked inside the transaction, which is its parent's", error
    else:
        raise AssertionError("the child committed what is its parent's")
    child()

transaction = session.transaction()
transaction.__enter__().dispatch(Note("parent"))
pid = in_child(refused)
transaction.__exit__(None, None, None)
ended(pid)
expected += 1 + WRITES
""",
    "children of children": """
def child_and_grandchild():
    child()
    pid = in_child(child)
    write(session, "child")
    ended(pid)

pid = in_child(child_and_grandchild)
write(session, "parent")
ended(pid)
expected += 4 * WRITES
""",
    "a daemon whose parent ends": """
def daemon():
    time.sleep(0.05)
    child()

def parent_of_daemon():
    write(session, "parent")
    pid = in_child(daemon)
    sys.stdout.flush()

read, written = os.pipe()
if not os.fork():
    os.close(read)
    parent_of_daemon()
    sys.exit()  # with all that an interpreter closes at its end
os.close(written)
for _ in range(4):
    listed = subprocess.run([sys.executable, "-c", lister, path, *place], capture_output=True, text=True)
    assert listed.returncode == 0, listed
assert os.read(read, 1) == b""  # the daemon has ended
expected += 2 * WRITES
""",
    "multiprocessing": """
def pooled(number):
    session.dispatch(Note(f"pool {number}"))

context = multiprocessing.get_context("fork")
workers = [context.Process(target=child) for _ in range(2)]
for worker in workers:
    worker.start()
with context.Pool(2) as pool:
    write(session, "parent")
    pool.map(pooled, range(4))
for worker in workers:
    worker.join()
    assert worker.exitcode == 0
expected += 3 * WRITES + 4
""",
}

END = """
if is_beside:
    os.remove(path + ".go")
session = opened()
texts = [note.text for note in session.select_all(Note)]
assert len(texts) == session.version == expected, (len(texts), session.version, expected)
assert session.store.verify("run-7") == expected
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_file", [True, pytest.param(False, marks=pytest.mark.postgres)])
def test_what_parent_child_and_other_processes_write_is_in_the_store(
    kind: str, is_file: bool, tmp_path: Path
) -> None:
    path = str(tmp_path / "plans.db")
    place = [path] if is_file else [shared_server().conninfo, schema_for(tmp_path)]
    program = f"{COMMON}\nwriter, lister = {WRITER!r}, {LISTER!r}\n" + (ROUND + KINDS[kind] + END) * ROUNDS
    assert printed(program, path, *place) == ""
