"""The contents of the pages in Airflow: view models and templates, which do not depend on Airflow."""
