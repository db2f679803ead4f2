"""The plan: its values, the commands that change it, and how it reads. Pure."""
