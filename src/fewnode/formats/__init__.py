"""Networks in files and objects of other tools, and in our own directories."""
