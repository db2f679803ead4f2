"""What was found, for each of its readers: a program, a model, a person."""
