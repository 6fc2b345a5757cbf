"""Rows of data tables: values, batches, upserts and files."""
