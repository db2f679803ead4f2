"""Reports of a plan's problems, for a program, a model or a person."""
