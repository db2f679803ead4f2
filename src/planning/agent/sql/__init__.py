"""SQL that models write: which statements may run, why they fail, and how their results read."""
