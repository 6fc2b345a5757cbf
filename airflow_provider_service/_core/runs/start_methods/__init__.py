"""The methods to start a workflow, a module each."""
