"""The single-file form of an engine: a stored (uncompressed) zip that the loader maps in place."""

from __future__ import annotations

import os
import tempfile
import zipfile
from pathlib import Path

from llmc.compiler.disk import disk_errors, replace, umask

#: zip has no earlier time; a fixed one keeps the bytes equal.
_EPOCH = (1980, 1, 1, 0, 0, 0)
#: Data of each member begins at a multiple of this.
_ALIGNMENT = 256
#: Extra field that pads a local header (the id that zipalign uses).
_PADDING_ID = 0xD935
_LOCAL_HEADER_BYTES = 30
_ZIP64_EXTRA_BYTES = 20
_COPY_BYTES = 1 << 20


SUFFIX = ".llmc"


def is_archive(path: Path) -> bool:
    """Whether an engine of that name is one file."""
    return path.suffix == SUFFIX


def pack(folder: Path, destination: Path) -> None:
    """Writes the files below `folder` into the archive `destination`, atomically."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [path.relative_to(folder).as_posix() for path in paths]
    with disk_errors(destination):
        handle, name = tempfile.mkstemp(prefix=f".{destination.name}.", suffix=".partial", dir=destination.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                    for path, member in zip(paths, names, strict=True):
                        _add(archive, path, member)
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(0o666 & ~umask())
            replace(temporary, destination)
        finally:
            temporary.unlink(missing_ok=True)


def _add(archive: zipfile.ZipFile, path: Path, member: str) -> None:
    info = zipfile.ZipInfo(member, _EPOCH)
    info.external_attr = 0o100644 << 16
    info.create_system = 3
    info.file_size = path.stat().st_size
    assert archive.fp is not None
    before = archive.fp.tell() + _LOCAL_HEADER_BYTES + len(member.encode()) + _ZIP64_EXTRA_BYTES
    padding = -(before + 4) % _ALIGNMENT
    info.extra = _PADDING_ID.to_bytes(2, "little") + padding.to_bytes(2, "little") + bytes(padding)
    with path.open("rb") as source, archive.open(info, "w", force_zip64=True) as target:
        while chunk := source.read(_COPY_BYTES):
            target.write(chunk)
