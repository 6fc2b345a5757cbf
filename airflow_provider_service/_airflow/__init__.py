"""How the provider meets Airflow: arguments, connections, settings, metrics. Not public."""
