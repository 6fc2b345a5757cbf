"""What people use of the provider, feature by feature, and the table of the versions that have it."""
