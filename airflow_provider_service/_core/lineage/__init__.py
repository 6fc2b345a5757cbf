"""The lineage of tasks: what they read, write and start, in the terms of OpenLineage."""
