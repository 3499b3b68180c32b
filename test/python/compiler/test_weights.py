import hashlib
import io

import ml_dtypes
import numpy as np
import pytest
import safetensors
from support.engine_files import DictSource

from llmc.compiler import weights as module
from llmc.compiler.dtypes import BY_NAME
from llmc.compiler.weights import Weight, check_sources, total_bytes, write_weights
from llmc.errors import ModelError

RNG = np.random.default_rng(1)
W = RNG.standard_normal((37, 10)).astype(np.float32)
G = RNG.standard_normal(10).astype(ml_dtypes.bfloat16)
SOURCE = DictSource({"w": W, "g": G})
WEIGHTS = [
    Weight("packed", BY_NAME["bf16"], (37, 10), recipe='#llm.source<"w">', layout="#llm.panels<rows = 8, group = 4>"),
    Weight("plain", BY_NAME["bf16"], (37, 10), recipe='#llm.source<"w">'),
    Weight("gamma", BY_NAME["f32"], (10,), recipe='#llm.source<"g">'),
    Weight("freq", BY_NAME["f32"], (3,), value=np.array([1, 2, 3], np.float32)),
    Weight("scalar", BY_NAME["f32"], (), value=np.array(0.5, np.float32)),
]


def written(weights=WEIGHTS, source=SOURCE):
    buffer = io.BytesIO()
    hashes = write_weights(weights, source, buffer.write)
    return buffer.getvalue(), hashes


def test_the_file_is_safetensors_with_the_right_values():
    data, hashes = written()
    assert len(data) == total_bytes(WEIGHTS)
    types = {"F32": np.float32, "BF16": ml_dtypes.bfloat16}
    tensors = {
        name: np.frombuffer(bytes(row["data"]), types[row["dtype"]]).reshape(row["shape"])
        for name, row in safetensors.deserialize(data)
    }
    np.testing.assert_array_equal(tensors["plain"], W.astype(ml_dtypes.bfloat16))
    np.testing.assert_array_equal(tensors["gamma"], G.astype(np.float32))
    np.testing.assert_array_equal(tensors["freq"], [1, 2, 3])
    assert tensors["scalar"] == 0.5
    assert tensors["packed"].shape == (5, 3, 8, 4)
    unpacked = tensors["packed"].transpose(0, 2, 1, 3).reshape(40, 12)[:37, :10]
    np.testing.assert_array_equal(unpacked, W.astype(ml_dtypes.bfloat16))
    for name, digest in hashes.items():
        assert hashlib.sha256(tensors[name].tobytes()).hexdigest() == digest


def test_bytes_do_not_depend_on_the_size_of_chunks(monkeypatch):
    whole = written()
    monkeypatch.setattr(module, "CHUNK_BYTES", 3 * 40)
    assert written() == whole


def test_memory_stays_below_a_chunk(monkeypatch):
    """No read asks for more rows than a chunk has."""
    monkeypatch.setattr(module, "CHUNK_BYTES", 8 * 40)

    class Watched(DictSource):
        largest = 0

        def read(self, name, rows=None):
            value = super().read(name, rows)
            Watched.largest = max(Watched.largest, value.nbytes)
            return value

    written(source=Watched(SOURCE.tensors))
    assert 0 < Watched.largest <= 8 * 40


def test_data_is_aligned():
    data, _ = written()
    header = int.from_bytes(data[:8], "little")
    assert (8 + header) % module.ALIGNMENT == 0


def test_json_round_trip():
    again = [Weight.from_json(weight.to_json()) for weight in WEIGHTS]
    assert written(again) == written()


def test_missing_tensors_are_listed():
    with pytest.raises(ModelError, match=r"lacks 1 tensors of the model:\n  g"):
        check_sources(WEIGHTS, DictSource({"w": W}))


def test_left_over_tensors_are_an_error():
    source = DictSource({**SOURCE.tensors, "extra": W, "inv_freq": G})
    with pytest.raises(ModelError, match=r"does not use 1 tensors .*\n  extra"):
        check_sources(WEIGHTS, source, ignore=["inv_freq"])


def test_misfits_name_both_shapes():
    source = DictSource({"w": W[:, :9], "g": G})
    with pytest.raises(ModelError, match=r"packed: expected shape \[37, 10\], the checkpoint gives \[37, 9\] \(w\)"):
        check_sources(WEIGHTS, source)
