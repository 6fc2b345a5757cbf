"""Desired state: the declared objects of an instance, compared with the existing ones."""
