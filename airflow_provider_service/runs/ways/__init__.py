"""The ways to start a workflow, a module each."""
