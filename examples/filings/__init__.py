"""A question about five companies, answered by a workflow over figures from their annual reports."""
