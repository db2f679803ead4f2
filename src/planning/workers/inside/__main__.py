"""Started as ``python inside/ PARENT FOLDER MODULE``: see ``start.main``."""

import sys
from importlib import import_module
from os.path import dirname

if __name__ == "__main__":  # pragma: no cover - the program of a process of its own
    sys.path[0] = dirname(dirname(__file__))  # noqa: PTH120 - pathlib would take as long to load as all else
    main = import_module("inside.start").main
    del sys.path[0]
    main()
