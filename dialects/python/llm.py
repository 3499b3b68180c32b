"""Op classes and enums of the `llm` dialect."""

from ._llm_enums_gen import *  # noqa: F403
from ._llm_ops_gen import *  # noqa: F403
