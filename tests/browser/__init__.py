"""The built site in a real browser. A package, so that a file here may have the name of one for the parts of it."""
