"""The endpoints of the service, one module a resource."""
