"""The state of the simulated service apart from executions and data tables: a small store per resource."""
