"""Checkpoints and torch modules to `llm` IR."""

from llmc.frontends.checkpoint import Checkpoint, open_checkpoint
from llmc.frontends.errors import FrontendError
from llmc.frontends.importer import (
    ImportedModel,
    ImportedModule,
    ImportOptions,
    import_checkpoint,
    import_module,
)

__all__ = [
    "Checkpoint",
    "FrontendError",
    "ImportOptions",
    "ImportedModel",
    "ImportedModule",
    "import_checkpoint",
    "import_module",
    "open_checkpoint",
]
