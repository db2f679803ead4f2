"""``planning ask``: a question to a database, answered with SQL."""
