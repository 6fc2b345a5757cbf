"""The command line: jobs outside of DAGs, by the code of the operators."""
