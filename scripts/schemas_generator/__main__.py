"""``python -m schemas_generator [DIRECTORY]``: write the generated files into a checkout (default: this directory)."""

import sys
from pathlib import Path

from schemas_generator import generate


def main(directory: Path) -> None:
    """Write every generated file below ``directory``, and say which."""
    for path, text in generate().items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        print(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
