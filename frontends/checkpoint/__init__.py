"""Weight readers: one `Checkpoint` interface over Hugging Face folders and GGUF files."""

from llmc.frontends.checkpoint.base import Checkpoint
from llmc.frontends.checkpoint.open import open_checkpoint

__all__ = ["Checkpoint", "open_checkpoint"]
