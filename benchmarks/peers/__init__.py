"""The contestants: one module for each, with its way to mark a step, and to take a plan to its end."""
