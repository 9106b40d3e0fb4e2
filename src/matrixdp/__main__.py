"""``python -m matrixdp``: the same as the command ``matrixdp``."""

from matrixdp.cli.app import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
