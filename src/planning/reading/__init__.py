"""From what a model wrote to a JSON value, with the place of everything in the original text.

One reader for plan documents, a planner's answers, arguments that are text, and SQL: thoughts in tags, code
fences, prose around, and almost-JSON, in which it repairs only unambiguous mistakes.
"""

from planning.reading.found import ANYTHING, Found, Path, Wanted
from planning.reading.places import Source
from planning.reading.python_values import plain_value
from planning.reading.read import Document, Unreadable, answers_in, read_document, read_json

__all__ = [
    "ANYTHING",
    "Document",
    "Found",
    "Path",
    "Source",
    "Unreadable",
    "Wanted",
    "answers_in",
    "plain_value",
    "read_document",
    "read_json",
]
