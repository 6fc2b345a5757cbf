"""What pages of Airflow show of the service: view models and templates, which know nothing of Airflow."""
