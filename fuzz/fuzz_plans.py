"""Feeds plans to the validator that a fuzzer makes, and holds each report to its promises.

usage: fuzz_plans.py --write-corpus FOLDER | [LIBFUZZER-OPTIONS] [FOLDER] | FILE

``make fuzz`` calls this. With a file it checks that one text, which repeats what was found.
"""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "planning" / "workflow"
WORDS = r"""
``` ~~~ // /* */ ": " ", }] ${ null true None False NaN -Infinity 1e999 007 +1 .5 \u \ud83d\ude00
\ud800 \x41 \' \d step_id description type tool name inputs depends_on outputs schema_version goal
steps plan parameters agent ${user_prompt} ${a.output} .output[0] {"step_id":"a"
[{"step_id":"a","description":"d"}] Plan: ```json
"""
TOKENS = (*"[]{},:\"'\\`/#*\n\r\t .-0$\u00a0\ufeff\u2028\u00e9\U0001f600", "\r\n", "},\n{", *WORDS.split())


class BrokenPromise(Exception):
    """A report is not what reports are to be."""


def demand(is_kept: bool, promise: str) -> None:  # noqa: FBT001 - it reads as an assertion does
    """Raise unless a promise is kept, also where assertions are switched off.

    Raises:
        BrokenPromise: It is not.
    """
    if not is_kept:
        raise BrokenPromise(promise)


def check(text: str) -> None:
    """Check one text.

    Raises:
        BrokenPromise: A promise is not kept.
    """
    # The fuzzer is to watch it being loaded.
    from planning.workflow import (  # noqa: PLC0415 - as above
        Capabilities,
        Report,
        Workflow,
        dump_workflow,
        validate_workflow,
    )
    from planning.workflow.recover.read import read_document  # noqa: PLC0415 - as above

    known = Capabilities(tools=["search", "fetch"], handlers=["notify"], agents=["researcher"])
    report = validate_workflow(text, known)
    demand(type(report) is Report, "the answer is a report")
    prompt, answer = report.to_prompt(), report.to_dict()
    demand(prompt.isascii(), "what a model reads is ASCII")
    demand(json.loads(json.dumps(answer))["success"] is report.ok, "the response can be written as JSON")
    demand(bool(report.render(width=60)), "the report can be printed")

    document = read_document(text)
    if document.value is not None:
        again = read_document(json.dumps(document.value))
        demand(repr(again.value) == repr(document.value), "what was recovered reads back equal")
        demand(again.found == [], "what was recovered is plain JSON")
    source = document.source
    for found in document.found:
        span = document.span(found)
        demand(span is not None and 0 <= span[0] <= span[1] <= len(text) + 1, "a place is within the text")
    for each in report.errors + report.warnings:
        words = each.message + each.hint
        demand(words.isascii() and "\n" not in words, "a message is one plain line")
        if each.line is None or each.column is None or source is None:
            raise BrokenPromise("a finding in a text has a place")
        column = len(source.line(each.line)) + 2  # the end of a line is one of its places
        demand(1 <= each.column <= column and each.length >= 1, "a place is within its line")
    if report.ok:
        demand(type(report.workflow) is Workflow, "a plan without errors is a workflow")
        dumped = validate_workflow(dump_workflow(report.workflow), known)
        demand(
            dumped.ok and dumped.workflow == report.workflow, "a workflow that is written reads back equal"
        )
    if not any("\ud800" <= each <= "\udfff" for each in text):
        demand(validate_workflow(text.encode(), known) == report, "bytes are checked as their text is")


def text_of(data: bytes) -> str:
    """The text that a fuzzer's bytes stand for: UTF-8, in which surrogates may stand."""
    return data.decode("utf-8", errors="surrogatepass") if is_utf8(data) else data.decode("latin-1")


def is_utf8(data: bytes) -> bool:
    """Whether the bytes are UTF-8, but for surrogates."""
    try:
        data.decode("utf-8", errors="surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def write_corpus(folder: Path) -> None:
    """Write the texts of the tests' corpus, each to a file, and the tokens for the fuzzer beside them."""
    sys.path.insert(0, str(CORPUS))
    from corpus_cases import corpus  # noqa: PLC0415 - only here are the tests needed

    folder.mkdir(parents=True, exist_ok=True)
    for case in corpus():
        data = case.text.encode(errors="surrogatepass")
        (folder / sha256(data).hexdigest()[:16]).write_bytes(data)
    escaped = ("".join(f"\\x{byte:02x}" for byte in token.encode()) for token in TOKENS)
    (folder.parent / "tokens.txt").write_text("".join(f'"{token}"\n' for token in escaped), "ascii")


def main(arguments: list[str]) -> None:
    """Do what the command line says."""
    if arguments[1:2] == ["--write-corpus"]:
        write_corpus(Path(arguments[2]))
        return
    if len(arguments) == 2 and Path(arguments[1]).is_file():
        check(text_of(Path(arguments[1]).read_bytes()))
        return
    import atheris  # noqa: PLC0415 - a text is repeated without it

    with atheris.instrument_imports(include=["planning.workflow"]):
        check("[]")
    atheris.Setup(arguments, lambda data: check(text_of(data)))
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
