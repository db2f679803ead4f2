"""Checks that a schema cannot express: names, dependencies, references."""
