"""The command line: what is done outside of DAGs, by the code of the operators."""
