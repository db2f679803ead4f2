"""Tools that are whole and small enough to copy."""
