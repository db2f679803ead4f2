"""From what a model wrote to a JSON value, with the place of everything in the original text."""
