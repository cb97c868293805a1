"""An HTTP/1.1 server that reports what it received, and sends challenges that nginx does not support.

usage: upstream.py PORT RECORD

Before its response, every request is written as a line of JSON to the file RECORD: method, target, headers (pairs, in
order), length and SHA-256 of the body. The response to any target not listed below is that object.

/basic /digest     401 until the credentials ferry:secret come; /digest?algorithm=SHA-256&stale=1
/token?id=X        a new token, T1, T2, ...; /bearer?id=X 401 without the newest one
/flaky?id=X&fail=N 503 N times, then the echo; &after=S adds a Retry-After
/set-cookie?NAME=VALUE&path=/x    sets a cookie
/form              the parts of a form: name, filename, type, SHA-256
/wait?s=S          the echo after S seconds
/status/N          that status, with the echo
/refuse-upload     413 at once, without reading the body, then closes the connection
"""

import email
import email.policy
import hashlib
import http.server
import json
import os
import re
import socketserver
import sys
import threading
import time
import urllib.parse

USER, PASSWORD, REALM = "ferry", "secret", "upstream"
lock = threading.Lock()
failures = {}
tokens = {}
nonces = set()


class Upstream(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one write, never delayed for an acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def handle_any(self):
        url = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        if url.path == "/refuse-upload":
            return self.refuse()
        digest, length = hashlib.sha256(), 0
        parts = []
        for piece in self.body():
            if url.path == "/form":
                parts.append(piece)
            digest.update(piece)
            length += len(piece)
        self.got = {
            "method": self.command,
            "target": self.path,
            "headers": [[name, value] for name, value in self.headers.items()],
            "length": length,
            "sha256": digest.hexdigest(),
        }
        with lock:
            record.write(json.dumps(self.got) + "\n")
            record.flush()
        if url.path == "/form":
            return self.form(b"".join(parts))
        routes = {
            "/basic": self.basic, "/digest": self.digest, "/token": self.token, "/bearer": self.bearer,
            "/flaky": self.flaky, "/set-cookie": self.set_cookie, "/wait": self.wait}
        route = routes.get(url.path)
        if route:
            return route()
        status = re.fullmatch(r"/status/(\d{3})", url.path)
        self.echo(int(status[1]) if status else 200)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = handle_any

    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline() not in (b"\r\n", b""):
                pass
            return
        left = int(self.headers.get("Content-Length", 0))
        while left and (piece := self.rfile.read(min(left, 65536))):
            left -= len(piece)
            yield piece
        if left:
            raise ConnectionError("the body ends early")

    def echo(self, status=200, *fields):
        self.answer(status, json.dumps(self.got).encode(), ("Content-Type", "application/json"), *fields)

    def answer(self, status, body=b"", *fields):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status not in (204, 304):
            self.wfile.write(body)
        self.wfile.flush()

    def refuse(self):
        self.close_connection = True
        self.answer(413, b"too large", ("Connection", "close"))

    def set_cookie(self):
        attributes = [f"{name}={value}" if value else name for name, value in self.query.items()]
        self.echo(200, ("Set-Cookie", "; ".join(attributes)))

    def flaky(self):
        with lock:
            count = failures[self.query["id"]] = failures.get(self.query["id"], 0) + 1
        if count > int(self.query["fail"]):
            return self.echo()
        fields = [("Retry-After", self.query["after"])] if "after" in self.query else []
        self.echo(503, *fields)

    def form(self, body):
        kind = self.headers["Content-Type"]
        policy = email.policy.HTTP.clone(utf8=True)
        message = email.message_from_bytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body, policy=policy)
        parts = [
            {
                "name": part.get_param("name", header="content-disposition"),
                "filename": part.get_filename(),
                "type": part.get_content_type(),
                "sha256": hashlib.sha256(part.get_payload(decode=True)).hexdigest(),
            }
            for part in message.iter_parts()
        ]
        self.answer(200, json.dumps(parts).encode(), ("Content-Type", "application/json"))

    def wait(self):
        time.sleep(float(self.query["s"]))
        self.echo()

    def token(self):
        with lock:
            count = tokens[self.query["id"]] = tokens.get(self.query["id"], 0) + 1
        self.answer(200, f"T{count}".encode())

    def bearer(self):
        if self.headers.get("Authorization") == f"Bearer T{tokens.get(self.query['id'])}":
            return self.echo()
        self.echo(401, ("WWW-Authenticate", f'Bearer realm="{REALM}"'))

    def basic(self):
        if self.headers.get("Authorization") == "Basic ZmVycnk6c2VjcmV0":
            return self.echo()
        self.echo(401, ("WWW-Authenticate", f'Basic realm="{REALM}"'))

    def digest(self):
        algorithm = self.query.get("algorithm", "MD5")
        if self.is_digest_right(algorithm):
            return self.echo()
        nonce = os.urandom(12).hex()
        nonces.add(nonce)
        challenge = f'Digest realm="{REALM}", qop="auth", algorithm={algorithm}, nonce="{nonce}", opaque="x"'
        self.echo(401, ("WWW-Authenticate", challenge))

    def is_digest_right(self, algorithm):
        scheme, _, rest = self.headers.get("Authorization", "").partition(" ")
        said = {name: quoted or plain for name, quoted, plain in re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]+))', rest)}
        if scheme != "Digest" or said.get("nonce") not in nonces or said.get("uri") != self.path:
            return False

        def hashed(*words):
            make = hashlib.md5 if algorithm == "MD5" else hashlib.sha256
            return make(":".join(words).encode()).hexdigest()

        secret = hashed(USER, REALM, PASSWORD)
        target = hashed(self.command, self.path)
        right = hashed(secret, said["nonce"], said.get("nc", ""), said.get("cnonce", ""), "auth", target)
        return said.get("username") == USER and said.get("response") == right

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def server_bind(self):
        # The inherited method looks up the host's name, which may take seconds.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "upstream", self.server_address[1]

    def handle_error(self, request, address):
        # In many tests the client closes early.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, address)


record = open(sys.argv[2], "a")
Server(("127.0.0.1", int(sys.argv[1])), Upstream).serve_forever()
