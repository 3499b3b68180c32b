"""The kernel cache: machine code by the content of what it was made from.

An entry is one file, written whole and then renamed, so that any number of compilations may share
a folder. An entry that does not carry its own hash is dropped and made again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import llmc

#: Changes when the layout of an entry, or the meaning of a key, changes.
_FORMAT = "llmc-kernel-1"


@dataclasses.dataclass(frozen=True)
class CachedKernel:
    """Machine code (`code`) and what the code generator says about it (`meta`, JSON)."""

    meta: Any
    code: bytes


class KernelCache:
    """A folder of entries; None as the folder is a cache that never has anything."""

    def __init__(self, folder: Path | None):
        self._folder = folder
        self.hits = 0
        self.misses = 0

    @staticmethod
    def key(ir_text: str, target: str, *tools: str) -> str:
        """Name of the entry for a kernel.

        ir_text: canonical text of the kernel without locations.
        target:  `Target.fingerprint`.
        tools:   versions and options of everything else that decides about the code.
        """
        digest = hashlib.sha256()
        for part in (_FORMAT, llmc.__version__, _compiler_fingerprint(), target, *tools, ir_text):
            data = part.encode("utf-8")
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
        return digest.hexdigest()

    def get(self, key: str) -> CachedKernel | None:
        """The entry, or None. A damaged entry is removed."""
        entry = self._read(key)
        if entry is None:
            self.misses += 1
        else:
            self.hits += 1
        return entry

    def put(self, key: str, kernel: CachedKernel) -> None:
        """Stores an entry. A cache that cannot be written is no reason to fail."""
        if self._folder is None:
            return
        meta = json.dumps(kernel.meta, sort_keys=True).encode("utf-8")
        body = len(meta).to_bytes(8, "little") + meta + kernel.code
        path = self._path(key)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=".", suffix=".partial", dir=path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(body).digest() + body)
                os.replace(name, path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise

    def _read(self, key: str) -> CachedKernel | None:
        if self._folder is None:
            return None
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        body = data[32:]
        if hashlib.sha256(body).digest() != data[:32]:
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        size = int.from_bytes(body[:8], "little")
        return CachedKernel(meta=json.loads(body[8 : 8 + size]), code=body[8 + size :])

    def _path(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / "kernels" / key[:2] / key


def default_cache_dir() -> Path:
    """$LLMC_CACHE_DIR, or llmc in the user's cache folder."""
    if named := os.environ.get("LLMC_CACHE_DIR"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "llmc"


def _compiler_fingerprint() -> str:
    """Hash of the compiled passes and the code generators: a change there must miss the cache."""
    global _fingerprint
    if _fingerprint is None:
        digest = hashlib.sha256()
        for root in map(Path, llmc.__path__):
            files = [*root.glob("codegen/**/*.py"), *root.glob("codegen/**/*.json"), *root.glob("dialects/_llmc_mlir*")]
            for path in sorted(files):
                digest.update(path.relative_to(root).as_posix().encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
        _fingerprint = digest.hexdigest()
    return _fingerprint


_fingerprint: str | None = None
