"""The one exception that users of the frontend see."""

from llmc.errors import ModelError


class FrontendError(ModelError):
    """The input cannot become `llm` IR; the message says what is wrong and, where known, how to fix it.

    Command lines print the message alone: it needs no traceback.
    """
