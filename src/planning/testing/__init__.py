"""For the tests of programs that use this package; install it with the extra ``[testing]``.

The strategies of Hypothesis are in ``planning.testing.strategies``.
"""

from typing import TYPE_CHECKING

from planning.lazy import lazy_names
from planning.testing.laws import check_plan_laws

if TYPE_CHECKING:
    from planning.testing.scripted import ScriptedModel
    from planning.testing.snapshots import JsonFiles, MarkdownFiles, TextFiles
    from planning.testing.stores import StoreSuite

__all__ = ["check_plan_laws", "ScriptedModel", "StoreSuite", "TextFiles", "MarkdownFiles", "JsonFiles"]

_HOMES = {
    "ScriptedModel": "scripted",
    "StoreSuite": "stores",
    "TextFiles": "snapshots",
    "MarkdownFiles": "snapshots",
    "JsonFiles": "snapshots",
}

__getattr__, __dir__ = lazy_names(__name__, globals(), _HOMES, __all__)
