"""The two formats of a plan document: their schemas, their checks, reading and writing."""
