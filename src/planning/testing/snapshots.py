"""Extensions of syrupy that store what a model reads as readable files.

Each snapshot is a file of its own under ``snapshots/`` in the root of the repository, in a folder tree that
mirrors that of the tests. In a test: ``assert prompt.text == snapshot.use_extension(MarkdownFiles)``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planning.plan.model import Plan
from planning.plan.render import plan_text, plan_to_dict

try:
    from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
    from syrupy.location import PyTestLocation
except ImportError:
    raise ImportError("snapshots need syrupy: pip install 'session-planning[testing]'") from None

_ROOTS = (".git", "pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini")


class TextFiles(SingleFileSnapshotExtension):
    """Text, as a ``.txt`` file."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        """The folder of a test module's snapshots."""
        module = Path(test_location.filepath).with_suffix("")
        root = next((each for each in module.parents if _is_root(each)), module.parent)
        inside = module.relative_to(root).parts
        return str(root.joinpath("snapshots", *(inside[1:] if inside[0] == "tests" else inside)))


class MarkdownFiles(TextFiles):
    """Prompt copy, or a ``Plan`` as a model reads it, as a ``.md`` file."""

    file_extension = "md"

    def serialize(self, data: Any, **options: Any) -> Any:
        """The text of a snapshot; that of a file ends with a newline."""
        text = plan_text(data) if isinstance(data, Plan) else data
        return super().serialize(f"{text}\n", **options)


class JsonFiles(TextFiles):
    """Tool definitions, a ``Plan`` or anything else that JSON can hold, as a ``.json`` file.

    Names keep their order: it is the order in which a model reads them.
    """

    file_extension = "json"

    def serialize(self, data: Any, **options: Any) -> Any:
        """The JSON text of a snapshot, indented.

        Raises:
            TypeError: A part of the data has no JSON form.
        """
        value = plan_to_dict(data) if isinstance(data, Plan) else data
        return super().serialize(json.dumps(value, indent=2, ensure_ascii=False) + "\n", **options)


def _is_root(folder: Path) -> bool:
    return any((folder / name).exists() for name in _ROOTS)
