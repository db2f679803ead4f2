"""What is made of a text with one character too few or too many, wherever that is."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from planning.reading import ANYTHING, read_document
from planning.reading.found import Wanted
from planning.workflow.wire.form import WORKFLOW

TEXTS = {
    "a workflow": ('[{"step_id":"a","inputs":{"q":[1,-2.5]}},\n{"step_id":"b","goal":null}]', WORKFLOW),
    "a fence": ('So:\n```json\n{"step_id": "a"}\n{"step_id": "b"}\n```\nOr [1]?', WORKFLOW),
    "loose JSON": ("{a: 'x', /* c */ \"b\": [+1, None, 'y\\n'],\n c: \"d\"} // end", ANYTHING),
}


@pytest.mark.parametrize(("text", "wanted"), TEXTS.values(), ids=TEXTS)
def test_one_character_too_few_or_too_many_gives(
    text: str, wanted: Wanted, snapshot: SnapshotAssertion
) -> None:
    lines = []
    for place in range(len(text) + 1):
        for extra in ("", *',"]{'):
            damaged = text[:place] + extra + text[place + (not extra) :]
            document = read_document(damaged, wanted)
            found = " ".join(f"{each.code}{document.span(each)}" for each in document.found)
            lines.append(f"{place}{extra}: {document.value!a} {found}".replace(", ", ","))
    assert "\n".join(lines) + "\n" == snapshot
