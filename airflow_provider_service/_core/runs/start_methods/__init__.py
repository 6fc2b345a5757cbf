"""The start methods, one module each."""
