"""Wait for executions: judge how they ended, and let thousands of waits share their requests."""
