"""Health of workflows: statistics on their executions over a window of time, and thresholds for them."""
