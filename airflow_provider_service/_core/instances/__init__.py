"""Instances as code: workflows as files, what a deployment of them would change, and how it is carried out."""
