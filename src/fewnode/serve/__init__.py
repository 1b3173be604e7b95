"""The HTTP service: name a new class by pointing at a few nodes, and see at once which others it claims."""
