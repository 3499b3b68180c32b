"""An engine on disk, as the compiler's own tools read it (folder or `.llmc` archive)."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from llmc.compiler.manifest import MANIFEST, PLAN, RECIPES, WEIGHTS, read_manifest
from llmc.compiler.weights import Weight
from llmc.errors import EngineError

_CHUNK = 1 << 20


@dataclasses.dataclass(frozen=True)
class Damage:
    """A part or tensor that is not what the manifest says."""

    where: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected}, found {self.found}"


class Engine:
    """Reads an engine. Raises EngineError when `path` is not one."""

    def __init__(self, path: Path):
        self.path = path
        self._archive: zipfile.ZipFile | None = None
        if not path.exists():
            raise EngineError(f"no engine at {path}")
        if path.is_file():
            try:
                self._archive = zipfile.ZipFile(path)
            except (zipfile.BadZipFile, OSError) as error:
                raise EngineError(f"{path} is no .llmc archive: {error}") from None
        elif not (path / MANIFEST).is_file():
            raise EngineError(f"{path} is no engine: it has no {MANIFEST}; make one with `llmc compile`")
        self.manifest: dict[str, Any] = read_manifest(self.read(MANIFEST), str(path))

    @property
    def is_archive(self) -> bool:
        return self._archive is not None

    @property
    def is_bound(self) -> bool:
        """Whether the engine has its weights."""
        return bool(self.manifest["weights"]["bound"])

    @functools.cached_property
    def plan(self) -> dict[str, Any]:
        return self._json(PLAN)

    @functools.cached_property
    def weights(self) -> list[Weight]:
        """How each weight is made, in the order of the manifest."""
        return [Weight.from_json(row) for row in self._json(RECIPES)["weights"]]

    def read(self, part: str) -> bytes:
        with self.open(part) as file:
            return file.read()

    def open(self, part: str) -> BinaryIO:
        try:
            if self._archive is not None:
                return self._archive.open(part)  # type: ignore[return-value]
            return (self.path / part).open("rb")
        except (KeyError, OSError):
            raise EngineError(f"{self.path} lacks its part {part}; copy the engine again or recompile it") from None

    def _json(self, part: str) -> Any:
        try:
            return json.loads(self.read(part))
        except ValueError as error:
            raise EngineError(
                f"{self.path}: {part} is damaged ({error}); copy the engine again or recompile it"
            ) from None

    def sha256(self) -> str:
        """Identity of the engine: the hash of its manifest, which has the hashes of all else."""
        return hashlib.sha256(self.read(MANIFEST)).hexdigest()

    def verify(self, weights: bool = True) -> Iterator[Damage]:
        """Recomputes the hash of every part and every tensor; yields what does not agree.

        weights: False leaves out the largest part.
        """
        for part in self.manifest["parts"]:
            if weights or part["path"] != WEIGHTS:
                yield from self._verify_part(part)
        if weights and self.is_bound:
            yield from self._verify_tensors()

    def _verify_part(self, part: dict[str, Any]) -> Iterator[Damage]:
        digest, size = hashlib.sha256(), 0
        try:
            with self.open(part["path"]) as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
                    size += len(chunk)
        except EngineError:
            yield Damage(part["path"], f"{part['bytes']} bytes", "no such part")
            return
        except zipfile.BadZipFile as error:
            yield Damage(part["path"], "intact data", str(error))
            return
        if size != part["bytes"]:
            yield Damage(part["path"], f"{part['bytes']} bytes", f"{size} bytes")
        elif digest.hexdigest() != part["sha256"]:
            yield Damage(part["path"], f"sha256 {part['sha256']}", digest.hexdigest())

    def _verify_tensors(self) -> Iterator[Damage]:
        with self.open(WEIGHTS) as file:
            size = int.from_bytes(file.read(8), "little")
            try:
                header = json.loads(file.read(size))
            except ValueError:
                yield Damage(WEIGHTS, "a safetensors header", "something else")
                return
            for tensor in self.manifest["weights"]["tensors"]:
                row = header.get(tensor["name"])
                if row is None:
                    yield Damage(WEIGHTS, f"tensor {tensor['name']}", "none of that name")
                    continue
                found = self._hash_span(file, 8 + size, *row["data_offsets"])
                if found != tensor["sha256"]:
                    yield Damage(f"tensor {tensor['name']}", f"sha256 {tensor['sha256']}", found)

    @staticmethod
    def _hash_span(file: BinaryIO, base: int, begin: int, end: int) -> str:
        digest = hashlib.sha256()
        file.seek(base + begin)
        left = end - begin
        while left > 0 and (chunk := file.read(min(left, _CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
        return digest.hexdigest()
