"""What the machine gives: whole files or none, tables of text, limited memory, other processes."""
