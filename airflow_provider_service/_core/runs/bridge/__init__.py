"""The bridge: a workflow on the service that starts other workflows."""
