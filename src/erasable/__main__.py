"""``python -m erasable`` is the command ``erasable``."""

from erasable.cli import main

if __name__ == "__main__":
    main()
