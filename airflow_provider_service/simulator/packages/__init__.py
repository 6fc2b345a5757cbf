"""Packages: workflows and their dependencies, as a gzipped tar archive of JSON files."""
