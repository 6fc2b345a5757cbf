"""The command line, which does jobs outside of DAGs with the code of the operators."""
