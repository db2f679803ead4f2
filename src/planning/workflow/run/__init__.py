"""Running a workflow: the order of its steps, their calls, and what the session keeps of it."""
