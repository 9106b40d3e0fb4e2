"""``python -m matrixdp``: the same as the command ``matrixdp``."""

from matrixdp.cli.app import main

if __name__ == "__main__":
    main()
