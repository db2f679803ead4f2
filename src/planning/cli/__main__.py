"""``python -m planning.cli`` is the ``planning`` command."""

from planning.cli import main

main()
