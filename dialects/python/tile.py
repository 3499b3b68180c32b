"""Op classes and enums of the `tile` dialect."""

from ._tile_enums_gen import *  # noqa: F403
from ._tile_ops_gen import *  # noqa: F403
