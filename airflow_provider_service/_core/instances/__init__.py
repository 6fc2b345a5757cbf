"""Instances as code: workflows as files, and their deployment: its plan, and how it is carried out."""
