"""A release: what it must fulfil, and how it is built."""
