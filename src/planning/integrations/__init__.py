"""The planning tools, and other toolboxes, in other frameworks: one module for each."""
