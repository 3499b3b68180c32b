"""Tests of the runtime's Python layer run on the toy engine."""

from support.toy_fixtures import host_so, make_toy, pack, slow_host_so, slow_toy, toy  # noqa: F401
