"""Health of workflows: figures on their executions over a window of time, and thresholds for them."""
