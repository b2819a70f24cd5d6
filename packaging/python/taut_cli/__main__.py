"""`python -m taut_cli`."""

from taut_cli import main

main()
