"""Files that appear whole or not at all, and disk errors as messages."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from llmc.errors import OutputError

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def check_replaceable(destination: Path, force: bool) -> None:
    """Refuses an output that exists, unless `force` and it is an engine or an empty folder."""
    if not os.path.lexists(destination):
        return
    is_engine = (destination / "manifest.json").is_file() or (destination.is_file() and destination.suffix == ".llmc")
    is_empty = destination.is_dir() and not any(destination.iterdir())
    if is_empty:
        return
    if not is_engine:
        raise OutputError(f"{destination} exists and is no engine: llmc does not overwrite it; choose another -o")
    if not force:
        raise OutputError(f"{destination} exists: add --force to replace it or choose another -o")


def replace(source: Path, destination: Path) -> None:
    """Renames `source` to `destination`; an older one goes only after the new one is in place."""
    older = None
    if os.path.lexists(destination):
        older = destination.with_name(f".{destination.name}.{os.getpid()}.replaced")
        os.rename(destination, older)
    try:
        os.rename(source, destination)
    except BaseException:
        if older is not None:
            os.rename(older, destination)
        raise
    sync_folder(destination.parent)
    if older is not None:
        if older.is_dir():
            shutil.rmtree(older, ignore_errors=True)
        else:
            older.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def disk_errors(destination: Path) -> Iterator[None]:
    """Turns disk errors inside the block into OutputError."""
    try:
        yield
    except OSError as error:
        raise_output_error(error, destination)


def raise_output_error(error: OSError, destination: Path) -> None:
    if error.errno in _NO_SPACE:
        raise OutputError(
            f"no space left for {destination}: nothing was kept. Free some space or choose another output folder"
        ) from error
    if error.errno in (
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.EEXIST,
        errno.ENAMETOOLONG,
    ):
        raise OutputError(f"cannot write {destination}: {error.strerror}") from error
    raise error


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
