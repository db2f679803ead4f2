"""``python -m planning`` is the ``planning`` command."""

from planning.cli import main

main()
