"""Tests of the server run it over the toy engine."""

from support.scripted_model import scripted  # noqa: F401
from support.toy_fixtures import host_so, make_toy, pack, slow_host_so, slow_toy, toy  # noqa: F401
from support.toy_server import serve, server  # noqa: F401
