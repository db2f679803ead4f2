"""The history of a session, read: its plan, its run, its health."""
