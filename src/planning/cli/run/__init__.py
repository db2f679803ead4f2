"""The command that runs a workflow."""
