"""`python -m llmc.frontends MODEL`: prints the `llm` IR of a checkpoint."""

from __future__ import annotations

import argparse
import sys

from llmc.frontends.errors import FrontendError
from llmc.frontends.importer import ImportOptions, import_checkpoint


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m llmc.frontends", description=__doc__)
    parser.add_argument("model", help="Hugging Face folder or .gguf file")
    parser.add_argument("--emit", choices=("torch", "llm"), default="llm", help="level of IR to print")
    parser.add_argument("--max-seq-len", type=int, help="longest sequence, for length-dependent rope types")
    parser.add_argument("--locations", action="store_true", help="print the module path and source line of each op")
    arguments = parser.parse_args()
    try:
        imported = import_checkpoint(
            arguments.model, ImportOptions(arguments.max_seq_len, keep_torch=arguments.emit == "torch")
        )
    except FrontendError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if arguments.emit == "torch":
        print(imported.torch_text)
    else:
        print(imported.module.operation.get_asm(enable_debug_info=arguments.locations))
    return 0


if __name__ == "__main__":
    sys.exit(main())
