"""The page at `/`: plain files, no build step, nothing from the network."""

from __future__ import annotations

from importlib import resources

from fastapi import APIRouter
from starlette.responses import Response

from llmc.server.errors import ApiError

router = APIRouter(include_in_schema=False)
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
# The page runs only its own scripts and asks only its own server.
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
}
_FILES = ("page.css", "page.js", "chat.js", "figures.js")


def _file(name: str) -> Response:
    content = (resources.files(__name__) / name).read_bytes()
    kind = _TYPES[name.rpartition(".")[2]]
    return Response(content, media_type=f"{kind}; charset=utf-8", headers=_HEADERS)


@router.get("/")
async def index() -> Response:
    return _file("index.html")


@router.get("/page/{name}")
async def part(name: str) -> Response:
    if name not in _FILES:
        raise ApiError(404, f"the page has no {name}")
    return _file(name)
