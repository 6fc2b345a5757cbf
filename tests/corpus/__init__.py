"""Workflows as people have them, made from a seed, and their way through all that this provider does with workflows."""
