"""A PostgreSQL server for tests: its own folder, socket and port; ended with the tests."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from session.stores import PostgresStore

PASSWORD = "p@ss/word:1%"  # noqa: S105 - of a server that lives as long as a test
ESCAPED = "p%40ss%2Fword%3A1%25"
_FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
_once = threading.Lock()  # one thread makes the schema of a folder
_MOST = 30.0  # seconds that a server may take to start or to end


def programs() -> Path | None:
    """Where the programs of PostgreSQL are: in ``PG_BIN``, on the path, or where Debian has them."""
    on_path = shutil.which("initdb")
    named = os.environ.get("PG_BIN") or (Path(on_path).parent if on_path else next(reversed(_FOLDERS), None))
    return Path(named) if named is not None and (Path(named) / "initdb").exists() else None


class PostgresServer:
    """A server that listens on 127.0.0.1 and in its folder; no two callers get the same schema."""

    def __init__(self, folder: Path, *, is_durable: bool = False) -> None:
        found = programs()
        assert found is not None
        self.folder = folder
        self._programs = found
        self._user = "postgres" if os.getuid() == 0 else None  # the programs refuse to run as root
        self._durable = "on" if is_durable else "off"
        self._process: subprocess.Popen[bytes] | None = None
        self._schemas = count(1)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        secret = folder / "password"
        secret.write_text(PASSWORD)
        if self._user:
            for path in (folder, secret):
                shutil.chown(path, self._user)
        # Without a password on the socket, which only the tests reach: they connect often, and it is slow.
        self._run(
            *("initdb", "-D", folder / "data", "-N", "-E", "UTF8", "--no-locale", "-U", "planning"),
            *("--auth-local=trust", "--auth-host=scram-sha-256", "--pwfile", secret),
        ).wait(_MOST)

    @property
    def conninfo(self) -> str:
        return f"host={self.folder} port={self.port} user=planning password='{PASSWORD}' dbname=postgres"

    @property
    def url(self) -> str:
        return self.url_at(self.port)

    def url_at(self, port: int) -> str:
        return f"postgresql://planning:{ESCAPED}@127.0.0.1:{port}/postgres"

    def schema(self) -> str:
        return f"test {os.getpid()} {next(self._schemas)}"  # unlike those of a fork

    def start(self, *settings: str) -> None:
        """Start it; ``settings`` are ``name=value``."""
        where = (f"port={self.port}", f"unix_socket_directories={self.folder}", "listen_addresses=127.0.0.1")
        every = (*where, f"fsync={self._durable}", "max_connections=200", "log_min_messages=fatal", *settings)
        options = [word for setting in every for word in ("-c", setting)]
        self._process = self._run("postgres", "-D", self.folder / "data", *options)
        until = time.monotonic() + _MOST
        while "ready" not in self._status():
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < until, "the server does not start"
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT cuts the connections, SIGQUIT is a crash."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(_MOST)

    def _status(self) -> str:
        pid_file = self.folder / "data" / "postmaster.pid"
        return pid_file.read_text().splitlines()[-1] if pid_file.exists() and pid_file.stat().st_size else ""

    def _run(self, program: str | Path, *words: str | Path) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [self._programs / program, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=self._user,
                group=self._user,
                extra_groups=[] if self._user else None,
            )


@contextmanager
def running(*settings: str, is_durable: bool = False) -> Iterator[PostgresServer]:
    folder, process = Path(tempfile.mkdtemp(prefix="planning-pg-")), os.getpid()
    server = PostgresServer(folder, is_durable=is_durable)
    try:
        server.start(*settings)
        yield server
    finally:
        if os.getpid() == process:  # a forked child has this block, too
            server.stop(signal.SIGQUIT)
            shutil.rmtree(folder)


@cache
def shared_server() -> PostgresServer:
    """The server that the tests of this process share; it ends with the process."""
    server = ExitStack()
    atexit.register(server.close)
    return server.enter_context(running())


@cache
def schema_for(folder: Path) -> str:
    """A schema of the shared server, with its tables, for a test's own folder."""
    from session.stores import PostgresStore

    schema = shared_server().schema()
    PostgresStore(shared_server().conninfo, schema=schema).create()
    return schema


def place_of(kind: str, folder: Path) -> list[str]:
    """The place of a store, as another process is given it."""
    return [str(folder / "plans.db")] if kind == "sqlite" else [shared_server().conninfo, schema_for(folder)]


def drop_schema(folder: Path) -> None:
    import psycopg

    with psycopg.connect(shared_server().conninfo, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA "{schema_for(folder)}" CASCADE'.encode())


def store_for(folder: Path, timeout: float = 5.0) -> PostgresStore:
    """A store of its own, as another process has it, on the schema of a folder."""
    from session.stores import PostgresStore

    with _once:
        schema = schema_for(folder)
    return PostgresStore(shared_server().conninfo, schema=schema, timeout=timeout)
