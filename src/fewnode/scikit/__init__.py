"""scikit-learn's door: nodes as samples."""
