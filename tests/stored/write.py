"""Write a release's folder of ``tests/stored``, once, with the code of that release.

usage: PYTHONPATH=src python tests/stored/write.py 0.2

A folder that is there is never written again: ``tests/session/stores/test_stored_by_releases.py`` reads all.
``0.2`` was written with commit c2a08aa4, the last before version 0.2.0.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE, SCHEMA = Path(__file__).parent, "written"
sys.path[:0] = map(str, (HERE.parents[1], HERE.parent / "session" / "stores", HERE))

from examples.folder_store import FolderStore  # noqa: E402 - of the paths above
from postgres_server import programs, running  # noqa: E402 - of the paths above
from stored_sessions import NAMES, opened, read, write  # noqa: E402 - of the paths above

from planning.workflow import Workflow, dump_workflow  # noqa: E402 - as the others
from session.stores import PostgresStore, SqliteStore  # noqa: E402 - as the others


def dumped(conninfo: str) -> str:
    """The tables and rows of the schema as SQL that any client runs."""
    options = ("--inserts", "--no-owner", "--no-privileges", "--no-comments", f"--schema={SCHEMA}")
    folder = programs()
    assert folder is not None, "needs PostgreSQL's programs"
    command = [str((folder / "initdb").resolve().with_name("pg_dump")), *options, f"--dbname={conninfo}"]
    text = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
    return re.sub(r"^(--.*|\\.*|SET .*|SELECT pg_catalog\.set_config.*|)\n", "", text, flags=re.MULTILINE)


def main(release: str) -> None:
    folder = HERE / release
    folder.mkdir()
    file = SqliteStore(folder / "plans.db")
    write(file)
    known = {name: read(file, name) for name in NAMES}
    (folder / "read.json").write_text(f"{json.dumps(known, indent=1, ensure_ascii=False)}\n")
    for name in NAMES:
        session = opened(file, name)
        (folder / f"snapshot_{name.replace(':', '_')}.json").write_text(session.snapshot().to_json(indent=1))
        if (workflow := session.select_latest(Workflow)) is not None:
            (folder / "workflow.json").write_text(dump_workflow(workflow))
    with TemporaryDirectory() as temporary:
        write(FolderStore(Path(temporary)))
        paths = sorted(path for path in Path(temporary).rglob("*") if path.is_file())
        texts = {path.relative_to(temporary).as_posix(): path.read_text() for path in paths}
        (folder / "folder.json").write_text(f"{json.dumps(texts, indent=0)}\n")
    with running() as server:
        store = PostgresStore(server.conninfo, schema=SCHEMA)
        store.create()
        write(store)
        (folder / "postgres.sql").write_text(dumped(server.conninfo))
        store.close()
    file.close()
    (folder / "plans.db").chmod(0o644)


if __name__ == "__main__":
    main(*sys.argv[1:])
