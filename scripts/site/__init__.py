"""The documentation site: its sources are the Markdown of the repository and the docstrings of the package."""
