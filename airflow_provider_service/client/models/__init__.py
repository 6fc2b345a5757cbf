"""Models of the service's answers, one module per resource; loaded on first use."""
