"""Packages: workflows and what they need, as a gzipped tar archive of JSON files."""
