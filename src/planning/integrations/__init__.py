"""The planning tools and other toolboxes in the frameworks of others: one module each, loaded when it is imported."""
