"""Output that appears whole or not at all.

Everything is written into a temporary folder beside the destination, flushed to the disk and then
renamed. A full disk, an exception or Ctrl-C leaves the destination as it was.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from llmc.compiler import archive
from llmc.compiler.disk import check_replaceable, disk_errors, raise_output_error, replace, sync_folder, umask
from llmc.errors import OutputError


class PartWriter:
    """A file of the engine that is hashed while it is written."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self._digest = hashlib.sha256()
        self.bytes = 0

    def write(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._digest.update(data)
        self.bytes += len(data)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


class OutputFolder:
    """A context manager around one output folder.

        with OutputFolder(destination) as out:
            out.write_json("plan.json", plan)
            out.commit()

    Without `commit` nothing remains. Disk errors come out as OutputError.
    """

    def __init__(self, destination: Path, force: bool = False):
        self.destination = Path(os.path.abspath(destination))
        self._force = force
        self._folder: Path | None = None
        #: path inside the folder -> (bytes, sha256), in the order of writing
        self.parts: dict[str, tuple[int, str]] = {}

    @property
    def folder(self) -> Path:
        assert self._folder is not None, "used outside its with statement"
        return self._folder

    def __enter__(self) -> OutputFolder:
        check_replaceable(self.destination, self._force)
        parent = self.destination.parent
        with disk_errors(self.destination):
            parent.mkdir(parents=True, exist_ok=True)
            name = tempfile.mkdtemp(prefix=f".{self.destination.name}.", suffix=".partial", dir=parent)
            self._folder = Path(name)
            # mkdtemp makes it private; an engine is as readable as any other output.
            self._folder.chmod(0o777 & ~umask())
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise_output_error(error, self.destination)

    def require_space(self, needed: int) -> None:
        """Refuses early when the disk cannot hold `needed` bytes."""
        free = shutil.disk_usage(self.folder).free
        if free < needed:
            raise OutputError(
                f"no space for {self.destination}: the output takes {needed:,} bytes, the disk has "
                f"{free:,} free. Free some space or choose another output folder"
            )

    @contextlib.contextmanager
    def open(self, path: str) -> Iterator[PartWriter]:
        """Opens a new part for writing."""
        file_path = self.folder / path
        file_path.parent.mkdir(parents=True, exist_ok=True)
        with file_path.open("xb") as file:
            writer = PartWriter(file)
            yield writer
            file.flush()
            os.fsync(file.fileno())
        self.parts[path] = (writer.bytes, writer.sha256)

    def write(self, path: str, data: bytes) -> None:
        with self.open(path) as part:
            part.write(data)

    def write_json(self, path: str, value: Any) -> None:
        self.write(path, canonical_json(value))

    def adopt(self, path: str) -> None:
        """Makes a file that something else wrote into the folder a part of it."""
        data_path = self.folder / path
        digest = hashlib.sha256()
        with data_path.open("rb+") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
            os.fsync(file.fileno())
        self.parts[path] = (data_path.stat().st_size, digest.hexdigest())

    def part_list(self) -> list[dict[str, Any]]:
        """`parts` of the manifest, sorted by path."""
        return [{"path": path, "bytes": size, "sha256": sha256} for path, (size, sha256) in sorted(self.parts.items())]

    def commit(self) -> None:
        """Makes the folder, or the archive of it, appear at the destination."""
        if archive.is_archive(self.destination):
            archive.pack(self.folder, self.destination)
            return
        for folder in [self.folder, *(p for p in self.folder.rglob("*") if p.is_dir())]:
            sync_folder(folder)
        replace(self.folder, self.destination)
        self._folder = None


def canonical_json(value: Any) -> bytes:
    """UTF-8, keys sorted, a newline at the end: the same value gives the same bytes."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, indent=1, allow_nan=False)
    return (text + "\n").encode("utf-8")
