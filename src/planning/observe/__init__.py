"""Views of the history of a session: its plan, its run, its health."""
