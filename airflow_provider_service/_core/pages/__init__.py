"""The contents of the pages in Airflow: view models and templates, independent of Airflow."""
