"""Waiting for executions: what counts as their end, and thousands of waits that share requests."""
