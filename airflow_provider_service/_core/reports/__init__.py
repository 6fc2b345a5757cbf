"""Reports that people read: what a task has found, as Markdown, HTML or JSON."""
