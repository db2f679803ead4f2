"""What no schema can say: names that exist, dependencies that end, references that lead somewhere."""
