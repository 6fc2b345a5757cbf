"""What the simulated service holds besides workflows, executions and data tables: a small store per resource."""
