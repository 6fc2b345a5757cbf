"""The endpoints of the service, one module per resource."""
