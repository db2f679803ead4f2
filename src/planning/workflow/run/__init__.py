"""Running a workflow: the order of its steps, their calls, and its records in the session."""
