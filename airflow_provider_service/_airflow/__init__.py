"""The provider's link to Airflow: connections, settings, metrics and the state of attempts. Not public."""
