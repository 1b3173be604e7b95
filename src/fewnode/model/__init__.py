"""A fitted method with what makes its answers trustworthy, as a directory and as a recogniser."""
