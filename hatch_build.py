"""The README as a package page shows it, and the links of the project.

A package page has no files beside the README, so relative links break there. With the address of the
repository, one line in pyproject.toml, they become absolute, as GitHub writes them. Without one, links become
plain text and pictures are omitted.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"!\[([^\]]*)\]\((?![a-z]+:|#)([^)]+)\)\n?")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?![a-z]+:|#)([^)]+)\)")


class PackagePage(MetadataHookInterface):
    """Fills in the fields that pyproject.toml calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README, and the links where the repository has an address."""
        repository = self.config["repository"].rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        if repository:
            text = PICTURE.sub(rf"![\1]({repository}/raw/HEAD/\2)\n", text)
            text = LINK.sub(rf"[\1]({repository}/blob/HEAD/\2)", text)
            metadata["urls"] = {
                "Repository": repository,
                "Documentation": f"{repository}/tree/HEAD/docs",
                "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
            }
        else:
            text = LINK.sub(r"\1", PICTURE.sub("", text))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
