"""Runs workflows: interprets their nodes against the clock, without a thread or timer per execution."""
