"""The provider's link to Airflow: arguments, connections, settings and metrics. Not public."""
