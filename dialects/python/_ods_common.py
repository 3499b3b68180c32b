"""What the generated op classes import from beside them: the one of `mlir`."""

from mlir.dialects._ods_common import *  # noqa: F403
from mlir.dialects._ods_common import _cext  # noqa: F401
