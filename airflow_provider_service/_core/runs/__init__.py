"""Starting executions: exactly one for each task run."""
