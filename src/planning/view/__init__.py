"""A session's history for a browser: a page that is live, the same page as a file, and pictures."""
