import concurrent.futures

import pytest

from llmc.compiler.cache import CachedKernel, KernelCache, default_cache_dir

KERNEL = CachedKernel(meta={"registers": 168}, code=b"\x7fELF")


@pytest.fixture
def cache(tmp_path):
    return KernelCache(tmp_path)


def entry_of(cache, tmp_path, key):
    return next(path for path in tmp_path.rglob(key))


def test_hit_and_miss(cache):
    key = cache.key("ir", "host")
    assert cache.get(key) is None
    cache.put(key, KERNEL)
    assert cache.get(key) == KERNEL
    assert (cache.hits, cache.misses) == (1, 1)


def test_every_input_is_part_of_the_key():
    keys = {
        KernelCache.key("ir", "host"),
        KernelCache.key("ir2", "host"),
        KernelCache.key("ir", "host avx2"),
        KernelCache.key("ir", "host", "ptxas 13.0"),
        KernelCache.key("ir", "host", "ptxas 12.9"),
        KernelCache.key("", "hostir"),
    }
    assert len(keys) == 6


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b[:20], lambda b: b"", lambda b: b[:-1] + b"!"])
def test_a_damaged_entry_is_a_miss_and_goes(cache, tmp_path, damage):
    key = cache.key("ir", "host")
    cache.put(key, KERNEL)
    path = entry_of(cache, tmp_path, key)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.get(key) is None
    assert not path.exists()
    cache.put(key, KERNEL)
    assert cache.get(key) == KERNEL


def test_no_folder_never_has_anything(tmp_path):
    cache = KernelCache(None)
    cache.put("key", KERNEL)
    assert cache.get("key") is None


def test_an_unwritable_cache_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    cache = KernelCache(tmp_path / "file")
    cache.put("key", KERNEL)
    assert cache.get("key") is None


def test_concurrent_writers_leave_whole_entries_only(cache, tmp_path):
    key = cache.key("ir", "host")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: cache.put(key, KERNEL), range(64)))
    assert cache.get(key) == KERNEL
    assert not list(tmp_path.rglob("*.partial"))


def test_the_environment_names_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("LLMC_CACHE_DIR", str(tmp_path))
    assert default_cache_dir() == tmp_path
    monkeypatch.delenv("LLMC_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / "llmc"
