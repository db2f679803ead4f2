"""The two formats of a plan document: their schemas, what breaks them, reading and writing."""
