"""mcp-server-fetch as it is, with a page of its own to fetch: a test must not need the web."""

import http.server
import threading

from mcp_server_fetch import main


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"a page to fetch"
        self.send_response(200)
        self.send_header("content-type", "text/plain")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


try:
    pages = http.server.ThreadingHTTPServer(("127.0.0.1", 47813), Page)
    threading.Thread(target=pages.serve_forever, daemon=True).start()
except OSError:
    pass  # another of these serves it already

main()
