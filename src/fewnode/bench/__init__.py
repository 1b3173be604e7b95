"""How fast and how large: three ways to write GPN, measured side by side on the same network, tasks and machine."""
