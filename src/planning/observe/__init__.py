"""What a session's history says: of its plan, its run, its health."""
