"""Look for the habits of language that make most bad sentences. Part of ``make check``.

usage: scripts/check_words.py [--all] [FILE...]      the pages and src/ unless named

They are refused in pages, in public docstrings, and in every string of src/ that has a space in it, such as
messages and help texts. In private docstrings, comments and the names of functions they are counted, and may
only become fewer: lower CEILINGS with them; ``--all`` lists them. Each finding is a line
``file:line: "the words": what is better``. A comment, ``# words: REASON`` or ``<!-- words: REASON -->`` keeps
a sentence that is right as it is.
"""

from __future__ import annotations

import ast
import io
import os
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PLACES = ("*.md", "docs/**/*.md", "specs/**/*.md", "src/**/*.py")
PRIVATE, NAMES = "private docstrings and comments", "names of functions"
CEILINGS = {PRIVATE: 0, NAMES: 198}
KEPT = re.compile(r"(#|<!--) words: \S")
Rules = dict[re.Pattern[str], str]


def compile_rules(rules: dict[str, str]) -> Rules:
    """Patterns in which a blank is any white space. If one has a group, only the words in it are bad."""
    return {re.compile(each.replace(" ", r"\s+"), re.IGNORECASE): better for each, better in rules.items()}


OPENING = compile_rules({r"\A\s*(What|Where|Which|Whether|How)\b": "name the thing; True if ..."})
RULES = compile_rules(
    {
        r"\bwhere (?:there (?:is|are|was|were)|it has|nothing|no)\b": "if, or a new sentence",
        r"\b(?:of which|(?<!-)(?:from|of|in|by|to|for|with|on) whose)\b": "split the sentence",
        r"\b(?:says?|knows?) of\b": "X shows Y, X knows about Y",
        r"(?:\A\s*|[.:!?] |\n[-*] )((?-i:Of) (?:an?|every|what)\b)": "For ...",
        r"\b(?:leaves?(?: [\w`]+)?|is|are|let) alone\b|\b((?:left )?alone)\b": "only",
        r"\b(?:is|are|was|were) another(?=[.,;:]| (?:than|one|in|when)\b)": "different",
        r"\b(?:ha[sd]|with|in|of) another (?:type|kind|case|order|form|format|status|title)\b": "different",
        r"\ba text (?:file|field|column|editor|message|block)|\b(a text|texts)\b": "text, a string",
        r"\b(?:by now|likewise|anew)\b": "the plain word, or nothing",
        r"\bgo(?:es)? on\b|\bgiven up\b": "continues; timed out, abandoned",
        r"\bthe same,? (?:from|for|in) async\b": "say what it does, or nothing",
        r"\b(?:told|tells?)(?: [\w'`]+){,6} apart\b|\b(told|tells)\b": "message, reason, shows",
        r"\b(?:somebody|nobody|whoever)\b": "the caller, the model, the user",
        r"\b(?:there|answer) (?:is|are|was|were) no|\b((?:is|are|was|were) (?:(?-i:none)\b|no (?!"
        r"longer|such|more|other|one)\w+))": "is not a ..., do not ...",
        r"\b(?:there )?(?:stands?|stood) (?:in|for|there|around|behind|beside)\b": "is, appears, means",
        r"\bof one's own\b": "your own, custom",
        r"\bwhat (?:becomes|became|comes|came) of\b": "the outcome, the result",
        r"\bha(?:ve|s) (?:it|them) (?:run|written|called|made|checked)\b": "asks the model for it, runs it",
        r"\b(?:left out|put back)\b": "omitted; restored",
        r"\bcircles?\b": "cycle",
        r"\b(?:is|are|was|were|be) (?:looked at|thought through)\b": "reviewed, checked",
        r"\b(?:a|the|each|every|this) (?:door|room|wing|house)s?\b": "entry point, package, space",
        r"\bsteps? at hand\b": "the current step",
        r"\bending decides\b": "say which extension means what",
        r"\bask(?:s|ed|ing)?(?: the user)? back\b": "ask the user",
        r"\bended the text by itself|\bbreaks? off\b": "the text is complete; ends too early",
        r"\bof a kind that is not given\b": "name the options",
        r"\bcarr(?:y|ies|ied|ying) out\b": "run, do, make, apply",
        r"\b(?:hold|holds|held|holding)(?: it| them)? back\b": "block, delay",
        r"\bcounted without a model\b": "say how it is counted",
        r"\ba repeat\b": "a repeated call",
        r"\bspeaks? to the model\b": "reports to the model",
        r"\bbesides(?=[.,;:)]|\s*\Z)": "also",
    }
)
VERBS = "feed|need|embed|proceed|exceed|seed|shed|succeed"
NAMING = compile_rules(
    {
        rf"\A_*(?!(?:{VERBS})(?:_|\Z))(?:[a-z]*ed|bound|built|chosen|done|drawn|found|given|gone|held|kept|known"
        r"|left|lost|made|meant|said|seen|sent|shown|taken|thrown|told|written)(?=_|\Z)": "begin with a verb"
    }
)
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Piece(NamedTuple):
    """Text between two lines, and what its findings count as: they are refused if it is empty."""

    text: str
    first: int
    last: int
    rules: Rules
    counts_as: str = ""


def blank_code(page: str) -> str:
    """Replace the code and the links of a page, so that only its prose is checked."""
    patterns = (r"^( *)(```+|~~~+).*?^\1\2 *$", r"(`+)(?!`).+?\1|<!--.*?-->|\]\([^)\s]*\)")
    for pattern in patterns:
        page = re.sub(pattern, lambda code: re.sub(r"[^\n]", "`", code[0]), page, flags=re.M | re.S)
    return page


def is_text(node: ast.AST) -> bool:
    """True if a node is a string with words."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value


def is_private(name: object) -> bool:
    """True if a name is only for its module."""
    return isinstance(name, str) and name.startswith("_") and not name.endswith("__")


def make_piece(node: ast.expr, rules: Rules, counts_as: str = "") -> Piece:
    """The text of a string, with a mark for each value in it."""
    parts = getattr(node, "values", [node])
    text = "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in parts)
    return Piece(text, node.lineno, node.end_lineno or node.lineno, rules, counts_as)


def read_nodes(node: ast.AST, *, hidden: bool) -> Iterator[Piece]:
    """The docstrings and strings below a node of Python, and the names of its functions."""
    documented = ""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and is_text(child.value):
            # A string below a name documents the name.
            counts_as = PRIVATE if hidden or is_private(documented) else ""
            yield make_piece(child.value, OPENING | RULES, counts_as)
            continue
        is_part = isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant)
        if (
            isinstance(child, ast.expr)
            and (isinstance(child, ast.JoinedStr) or is_text(child))
            and not is_part
        ):
            yield make_piece(child, RULES)
        if isinstance(child, Function) and "property" not in "".join(map(ast.unparse, child.decorator_list)):
            yield Piece(child.name, child.lineno, child.lineno, NAMING, NAMES)
        is_inner = isinstance(node, Function) and isinstance(child, Function | ast.ClassDef)
        is_hidden = hidden or is_inner or is_private(getattr(child, "name", None))
        yield from read_nodes(child, hidden=is_hidden)
        target = (getattr(child, "targets", None) or [getattr(child, "target", None)])[0]
        documented = getattr(target, "id", "")


def read_pieces(path: Path, source: str) -> Iterator[Piece]:
    """The pieces of a file."""
    if path.suffix == ".md":
        yield Piece(blank_code(source), 1, source.count("\n") + 1, RULES)
        return
    parts = path.parts[path.parts.index("src") + 1 :] if "src" in path.parts else path.parts[-1:]
    yield from read_nodes(
        ast.parse(source), hidden=any(is_private(each.removesuffix(".py")) for each in parts)
    )
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Piece(token.string, token.start[0], token.start[0], RULES, PRIVATE)


def find(path: Path) -> Iterator[tuple[str, str]]:
    """The bad habits of a file, each with what it counts as."""
    source = path.read_text()
    lines = source.splitlines()
    for text, first, last, rules, counts_as in read_pieces(path, source):
        for pattern, better in rules.items():
            for match in pattern.finditer(text):
                line = min(last, first + text.count("\n", 0, match.start(pattern.groups)))
                near = lines[max(0, line - 2) : line] if path.suffix == ".md" else lines[first - 1 : last]
                if (words := match[pattern.groups]) and not any(map(KEPT.search, near)):
                    yield (
                        counts_as,
                        f'{os.path.relpath(path)}:{line}: "{" ".join(words.split())}": {better}\n',
                    )


def main(arguments: list[str]) -> int:
    """Print the findings, and fail if one is refused, or if more are counted than before."""
    named = [Path(each).resolve() for each in arguments if each != "--all"]
    paths = named or sorted(path for place in PLACES for path in ROOT.glob(place))
    found = [each for path in paths for each in find(path)]
    lines = [line for counts_as, line in found if not counts_as or "--all" in arguments]
    fails = any(not counts_as for counts_as, _ in found)
    for counted, ceiling in {} if named else CEILINGS.items():
        number = sum(counts_as == counted for counts_as, _ in found)
        fails |= number > ceiling
        lines.append(f"bad habits in {counted}: {number}, at most {ceiling}\n")
    sys.stdout.write("".join(lines))
    return 1 if fails else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
