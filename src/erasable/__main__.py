"""``python -m erasable`` is the command ``erasable``."""

from erasable.cli import run

if __name__ == "__main__":
    run()
