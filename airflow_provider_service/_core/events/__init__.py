"""Watching for executions that end."""
