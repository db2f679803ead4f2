"""What models put around an answer: thoughts in tags, code fences, backticks."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

# The tag that opens the thoughts may have been a part of the prompt.
_THOUGHTS: Final = re.compile(
    r"\s*+<think(?:ing)?>.*?</think(?:ing)?>|.*?</think(?:ing)?>[ \t\r]*+$",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_TAG: Final = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
# On one line, or up to the line that closes it, or to the end: a model may have been stopped at its fence.
# The end of a run of backticks is never compared alone, so that no run is read again and again.
_BLOCK: Final = re.compile(
    r"^[ \t]*+(?P<mark>`{3,}+|~{3,}+)"
    r"(?:(?P<line>[^\n]*?)(?<![`~])(?P=mark)(?![`~])"
    r"|(?P<info>[^\n]*+)\n(?P<lines>.*?)(?:^[ \t]*+(?P=mark)[`~]*+[ \t\r]*+$|\Z))",
    re.DOTALL | re.MULTILINE,
)
_WITHIN_LINE: Final = re.compile(r"(?<![`~])(`{3,}+|~{3,}+)[ \t]*+([\w+-]++)[ \t]++([^\n`~]++)\1(?![`~])")
_ATTRIBUTE: Final = re.compile(r"[\w-]+=|\{")
_CODE: Final = re.compile(r"(`{1,2}+)([^`].*[^`])\1", re.DOTALL)


def thoughts_end(text: str) -> int:
    """Where the answer begins, after the model's thoughts; 0 if there are none."""
    thoughts = _THOUGHTS.match(text) if _TAG.search(text) else None
    return 0 if thoughts is None else thoughts.end()


def breaks_off_in_thoughts(text: str, offset: int) -> bool:
    """Whether a place is in a block of thoughts that never ends."""
    tags = list(_TAG.finditer(text))
    opening = max((tag.start() for tag in tags if not tag[1] and tag.end() <= offset), default=-1)
    return opening >= 0 and not any(tag[1] and tag.start() > opening for tag in tags)


def answers_in(text: str, labels: Container[str]) -> list[str]:
    """The answers in a text that is not JSON, each once: the content of its fences, or the text itself.

    Args:
        text: What a model wrote; its thoughts are skipped.
        labels: What fences are labelled with, in lower case: where one is, those of others do not count.
    """
    text = text[thoughts_end(text) :].strip()
    blocks = [_content(block, labels) for block in _BLOCK.finditer(text)]
    within = ((match[2].lower(), match[3].strip()) for match in _WITHIN_LINE.finditer(text))
    blocks += [block for block in within if block[0] in labels]
    bodies = [body for label, body in blocks if label in labels] or [body for _, body in blocks]
    if not blocks:
        code = _CODE.fullmatch(text)
        bodies = [text if code is None else code[2].strip()]
    return list(dict.fromkeys(bodies))


def _content(block: re.Match[str], labels: Container[str]) -> tuple[str, str]:
    """The label of a block, and what is in it; the first line of it may be a part of the answer."""
    if block["line"] is not None:
        first, lines, is_label = block["line"], "", False
    else:
        first, lines = block["info"], block["lines"].strip().removesuffix(block["mark"]).rstrip()
        is_label = " " not in first.strip() or _ATTRIBUTE.search(first) is not None
    label, _, rest = first.strip().partition(" ")
    if label.lower() in labels or rest.lstrip()[:1] in ("{", "["):
        return label.lower(), rest.strip() if block["line"] is not None else lines
    return "", lines if is_label else f"{first}\n{lines}".strip()
