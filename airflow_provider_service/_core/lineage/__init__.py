"""What tasks read, write and start, as assets of Airflow and in the terms of OpenLineage."""
