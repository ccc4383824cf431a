#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""An HTTP/1.1 server for the lab: GET /N answers N bytes, and connections stay open."""

import http.server
import sys

_BLOCK = bytes(65536)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):  # pylint: disable=invalid-name
        try:
            left = int(self.path.lstrip("/"))
        except ValueError:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(left))
        self.end_headers()
        while left > 0:
            left -= self.wfile.write(_BLOCK[:left])

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 64
    server = http.server.ThreadingHTTPServer((sys.argv[1], 8080), Handler)
    print("ready", flush=True)
    server.serve_forever()
