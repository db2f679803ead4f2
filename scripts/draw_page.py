"""Draws the page of a run that failed, light and dark, as docs/page*.webp: needs Debian's chromium."""

from __future__ import annotations

import base64
import json
import sys
import tempfile
import time
from pathlib import Path

from planning.observe.timeline import Recent
from planning.view.document import Document
from planning.view.page import export_page
from planning.workflow import Capabilities, run_workflow, validate_workflow
from session import Session

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "planning" / "view"))
from browser import Browser, chromium  # noqa: E402 - it is beside the tests

STEPS = {  # what it depends on, and how long it takes
    "fetch_sales": ([], 0.5),
    "fetch_rates": ([], 0.3),
    "fetch_targets": ([], 0.2),
    "clean_sales": (["fetch_sales"], 0.3),
    "convert": (["clean_sales", "fetch_rates"], 0.2),
    "by_month": (["convert"], 0.3),
    "by_region": (["convert"], 0.4),
    "by_product": (["convert"], 0.2),
    "compare": (["by_month", "fetch_targets"], 0.2),
    "chart": (["by_region", "by_product"], 0.1),
    "report": (["compare", "chart"], 0.1),
}


def page() -> bytes:
    """The page of a run whose chart failed."""

    def called(step: str, seconds: float) -> dict[str, str]:
        time.sleep(seconds)
        if step == "chart":
            raise ConnectionError("cannot reach charts.example: connection refused")
        return {"step": step}

    steps = [
        {
            "step_id": name,
            "description": name.replace("_", " ").capitalize(),
            "type": "tool",
            "name": "work",
            "inputs": {"step": name, "seconds": seconds},
            "depends_on": needs,
        }
        for name, (needs, seconds) in STEPS.items()
    ]
    document = json.dumps({"schema_version": 2, "goal": "Report the revenue of 2026", "steps": steps})
    session = Session()
    run_workflow(validate_workflow(document).workflow, Capabilities(tools={"work": called}), session=session)
    shown = Document(title="report", kind="session", source="runs.db")
    shown.read(Recent(session))
    return export_page("".join(shown.parts()))


def main() -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        file = Path(folder, "report.html")
        file.write_bytes(page())
        browser = Browser(chromium() or sys.exit("install chromium"), Path(folder, "profile"))
        for name, scheme in (("page.webp", "light"), ("page-dark.webp", "dark")):
            with browser.page(width=1360, height=720, scheme=scheme) as shown:
                shown.open(file.as_uri())
                shown.settle()
                drawn = shown.send("Page.captureScreenshot", format="webp", quality=60)["data"]
            (ROOT / "docs" / name).write_bytes(base64.b64decode(drawn))
        browser.close()


if __name__ == "__main__":
    main()
