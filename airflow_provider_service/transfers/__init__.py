"""Transfers between data tables, SQL databases and files in object storage."""
