"""Desired state: what an instance should hold, compared with what it holds."""
