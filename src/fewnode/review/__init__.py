"""What comes after an answer: why, what to ask next, what to trust, and pictures."""
