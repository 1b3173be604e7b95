"""A user's own tables: what they say becomes a dataset."""
