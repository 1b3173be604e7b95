"""Every node in blocks, and many machines."""
