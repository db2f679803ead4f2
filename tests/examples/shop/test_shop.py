"""The sample shop: what the agent answers to the recorded questions."""

from __future__ import annotations

from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from examples.shop import QUESTIONS, create_database, recorded_sql
from planning.agent import SqlDatabase, build_text_to_sql_graph


def test_every_recorded_question_has_its_answer(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    create_database(tmp_path / "shop.db")
    answers = []
    with SqlDatabase(tmp_path / "shop.db") as database:
        graph = build_text_to_sql_graph(database, recorded_sql)
        for question in QUESTIONS:
            final = graph.invoke({"resolved_query": question})
            assert (final["success"], final["error"]) == (True, None)
            rows = final["execution_result"]["data"]
            answers.append(f"{question}\n{[*map(tuple, rows)]}\n")
    assert "\n".join(answers) == snapshot
