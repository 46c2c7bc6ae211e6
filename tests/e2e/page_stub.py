"""A server for tests of the page alone: the files of web/ with the real server's headers, and
answers that the test chooses, streamed in pieces of any size.

Everything the page asks for is recorded in `requests`, so that a test can see what left the page.
"""

import http.server
import json
import pathlib
import threading
import time

WEB = pathlib.Path(__file__).resolve().parents[2] / "web"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript",
         ".svg": "image/svg+xml"}
# The same policy as src/server sends; test_page.py compares the two.
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
          "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


class PageStub:
    """Serves until close(). Set `answer`, `reasoning`, `piece` (characters a chunk), `pause_s`
    (seconds between chunks) and `model` before the page asks."""

    def __init__(self):
        self.answer, self.reasoning, self.piece, self.pause_s = "ok", "", 8, 0.0
        self.model = "stub"
        self.status = 200
        self.requests = []  # (method, path, body)
        self.hung_up = threading.Event()
        self.is_closed = False
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.is_closed = True  # connections that are kept alive end at their next request
        self.server.shutdown()
        self.server.server_close()

    def chunks(self):
        """The data of each SSE event of one answer."""
        def delta(field, text):
            return {"choices": [{"index": 0, "delta": {field: text}, "finish_reason": None}]}
        for field, text in (("reasoning_content", self.reasoning), ("content", self.answer)):
            for start in range(0, len(text), self.piece):
                yield delta(field, text[start:start + self.piece])
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
               "timings": {"prompt_ms": 12.0, "predicted_per_second": 50.0}}
        yield {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5,
                                        "total_tokens": 12}}

    def _handler(stub):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def reply(self, status, kind, body):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Security-Policy", POLICY)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                stub.requests.append(("GET", self.path, b""))
                if self.path == "/v1/models":
                    body = json.dumps({"data": [{"id": stub.model}]}).encode()
                    return self.reply(200, "application/json", body)
                path = WEB / (self.path.strip("/") or "index.html")
                if path.suffix not in TYPES or not path.is_file():
                    return self.reply(404, "text/plain", b"no")
                self.reply(200, TYPES[path.suffix], path.read_bytes())

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if stub.is_closed:
                    self.close_connection = True
                    return None
                stub.requests.append(("POST", self.path, body))
                if stub.status != 200:
                    error = json.dumps({"error": {"message": stub.answer}}).encode()
                    return self.reply(stub.status, "application/json", error)
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream; charset=utf-8")
                self.send_header("Connection", "close")
                self.end_headers()
                try:
                    for chunk in stub.chunks():
                        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                        self.wfile.flush()
                        time.sleep(stub.pause_s)
                    self.wfile.write(b"data: [DONE]\n\n")
                except OSError:
                    stub.hung_up.set()
                self.close_connection = True

        return Handler
