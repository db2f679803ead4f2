"""The page that ``planning run --view`` serves: from the first change of the run until it is closed."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from signal import Signals
from typing import Self

from planning.cli.drive import until_signalled
from planning.cli.terminal import say
from planning.cli.usage import Refused
from planning.cli.view import open_browser
from planning.observe.text import line_of
from planning.view.sources import StoreSource
from session import StoreError


class RunPage:
    """The page of a session, served in a thread of its own while the run has the others."""

    def __init__(self, store: str, session: str) -> None:
        """Nothing is served yet: the session may not exist."""
        try:
            from planning.view.server import serve
        except ImportError as error:
            raise Refused(str(error)) from None
        self._serve = serve
        self._store = store
        self._session = session
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        """Return the page."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it; pages in a browser hear of that, and stay as they are."""
        if self._thread is not None and self._task is not None and self._thread.is_alive():
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)
            self._thread.join()

    def open(self, *_event: object) -> None:
        """Serve the page from now on, say where, and open a browser; later calls do nothing."""
        if self._thread is not None:
            return
        link = Future[str]()

        async def served() -> None:
            self._task = asyncio.current_task()
            try:
                await self._serve(StoreSource(self._store, self._session), started=link.set_result)
            except (OSError, StoreError) as error:
                link.set_exception(error)
            except asyncio.CancelledError:
                pass

        self._thread = threading.Thread(target=asyncio.run, args=(served(),), name="page", daemon=True)
        self._thread.start()
        try:
            say(f"the run is shown at {link.result()}")
        except (OSError, StoreError) as error:
            say(f"the run cannot be shown: {line_of(error)}")
        else:
            threading.Thread(target=open_browser, args=(link.result(),), name="browser", daemon=True).start()

    def wait(self) -> Signals | None:
        """Keep the page until a signal comes, which is returned; None where it was never opened."""
        if self._thread is None or not self._thread.is_alive():
            return None
        say("press Ctrl-C to close the page")
        return until_signalled(_forever())


async def _forever() -> None:
    await asyncio.Event().wait()
