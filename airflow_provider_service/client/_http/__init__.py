"""The HTTP layer of the REST API client: address, key, time limits, retries, pages and errors."""
