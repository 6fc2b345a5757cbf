"""How a call of the REST API travels: address, key, time limits, retries, pages and errors."""
