"""`python -m fewnode` is `fewnode`."""

from fewnode.cli import main

main()
