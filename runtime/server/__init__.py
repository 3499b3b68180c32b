"""`llmc serve`: the OpenAI API over loaded engines.

`protocol` is what comes in and goes out, `completions`, `chat`, `responses` and the other routers do the work,
`models` holds the engines, `app` puts them together.
"""

from llmc.server.app import create_app
from llmc.server.config import ServerConfig
from llmc.server.models import Models, ServedModel, served

__all__ = ["Models", "ServedModel", "ServerConfig", "create_app", "served"]
