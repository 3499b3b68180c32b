"""`python -m llmc` and the script `llmc`."""

import sys


def main() -> int:
    # Here and not at the top: `import llmc.__main__` stays cheap.
    from llmc.compiler.cli import main as cli

    return cli() or 0


if __name__ == "__main__":
    sys.exit(main())
