"""Serves the Python SDK's own conformance fixture over stdio. `python_fixture.py FOLDER`, where FOLDER is
examples/servers/everything-server of the SDK's source package; the fixture itself can only serve HTTP."""

import logging
import sys

sys.path.insert(0, sys.argv[1])
from mcp_everything_server.server import mcp  # noqa: E402

logging.disable(logging.INFO)
mcp.run(transport="stdio")
