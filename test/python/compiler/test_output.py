import errno
import os
import zipfile

import pytest
from support.engine_files import write_small_engine

from llmc.compiler.output import OutputFolder, canonical_json
from llmc.errors import OutputError


def contents(folder):
    """Names and bytes of all files below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_nothing_appears_before_commit(tmp_path):
    with OutputFolder(tmp_path / "out") as out:
        out.write("a/b", b"data")
        assert not (tmp_path / "out").exists()
        out.commit()
    assert contents(tmp_path) == {"out/a/b": b"data"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_nothing_remains_after_an_interruption(tmp_path, error):
    def interrupted():
        with OutputFolder(tmp_path / "out") as out:
            out.write("a", b"data")
            raise error

    with pytest.raises(error):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    """ENOSPC in the middle of a part, as the write call reports it."""

    def write_until_full():
        with OutputFolder(tmp_path / "out") as out:
            out.write("small", b"fits")
            with out.open("large") as part:
                part.write(b"x" * 10)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OutputError, match=r"no space left for .*out: nothing was kept"):
        write_until_full()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_disk_that_is_really_full(tmp_path):
    def write_to_full_device():
        with OutputFolder(tmp_path / "out"), open("/dev/full", "wb") as full:
            full.write(b"x" * 100)
            full.flush()

    with pytest.raises(OutputError, match="no space left"):
        write_to_full_device()


def test_too_little_space_is_refused_early(tmp_path):
    with (
        pytest.raises(OutputError, match="the output takes 1,000,000,000,000,000,000 bytes, the disk has"),
        OutputFolder(tmp_path / "out") as out,
    ):
        out.require_space(10**18)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_engine_needs_force(tmp_path, small_source):
    path = write_small_engine(tmp_path / "engine", small_source)
    before = contents(path)
    with pytest.raises(OutputError, match="add --force"), OutputFolder(path):
        pass
    assert contents(path) == before
    with OutputFolder(path, force=True) as out:
        out.write("new", b"")
        out.commit()
    assert contents(tmp_path) == {"engine/new": b""}


def test_a_failure_keeps_the_existing_engine(tmp_path, small_source):
    path = write_small_engine(tmp_path / "engine", small_source)
    before = contents(path)

    def fail():
        with OutputFolder(path, force=True) as out:
            out.write("new", b"")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert contents(path) == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["engine"]


def test_force_never_replaces_what_is_no_engine(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with (
        pytest.raises(OutputError, match="is no engine: llmc does not overwrite it"),
        OutputFolder(tmp_path, force=True),
    ):
        pass
    assert (tmp_path / "thesis.txt").read_text() == "precious"


def test_unwritable_parent(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"), OutputFolder(tmp_path / "file" / "engine"):
        pass


def test_parts_have_sizes_and_hashes(tmp_path):
    with OutputFolder(tmp_path / "out") as out:
        out.write("b", b"")
        out.write("a", b"abc")
        assert out.part_list() == [
            {"path": "a", "bytes": 3, "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
            {"path": "b", "bytes": 0, "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        ]


def test_canonical_json_is_sorted_and_refuses_nan():
    assert canonical_json({"b": 1, "a": "é"}) == canonical_json({"a": "é", "b": 1}) != b""
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(float("nan"))


def test_engines_are_equal_wherever_they_are_written(tmp_path, small_source):
    first = write_small_engine(tmp_path / "one", small_source)
    second = write_small_engine(tmp_path / "elsewhere" / "two", small_source)
    assert contents(first) == contents(second)


def test_archives_are_stored_aligned_and_equal(tmp_path, small_source):
    folder = write_small_engine(tmp_path / "folder", small_source)
    first = write_small_engine(tmp_path / "one.llmc", small_source)
    second = write_small_engine(tmp_path / "deep" / "two.llmc", small_source)
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == contents(folder)
        assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())
        for info in archive.infolist():
            name_size, extra_size = (
                int.from_bytes(first.read_bytes()[info.header_offset + at :][:2], "little") for at in (26, 28)
            )
            assert (info.header_offset + 30 + name_size + extra_size) % 256 == 0
