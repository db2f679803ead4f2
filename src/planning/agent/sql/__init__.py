"""SQL that models write: which statements may run, why they fail, and the processes that run them."""
