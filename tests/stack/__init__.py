"""A real deployment of Airflow, with the provider's wheel installed, that is killed, frozen, clicked and searched.

Run by ``make test-stack``.
"""
