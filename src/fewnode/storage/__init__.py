"""Datasets, models and weights as files with checksums."""
