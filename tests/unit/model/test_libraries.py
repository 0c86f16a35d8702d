"""A library that can't be loaded now costs the request that needs it, with an error on which clients try again."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable

import pytest

from headpond.model import ErrorCode, StorageFailed
from headpond.model import libraries as tested
from headpond.model.patterns import compiled
from headpond.protocol.records.compression import ZSTD, decompress


@pytest.mark.parametrize(
    ("name", "use"), [("re2", lambda: compiled("a{3}b")), ("cramjam", lambda: decompress(ZSTD, b"x"))]
)
def test_without_descriptors_clients_are_asked_to_try_again(
    name: str, use: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def import_module(name: str) -> object:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(tested, "import_module", import_module)
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(StorageFailed) as failed:
        use()
    assert failed.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert name in failed.value.message
