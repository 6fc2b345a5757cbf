"""What the provider knows of the service: runs, waits, rows, instances, pages. Not public."""
