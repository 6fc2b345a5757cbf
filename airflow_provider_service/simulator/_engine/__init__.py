"""Runs workflows by interpreting their nodes against the clock, without a thread or timer per execution."""
