"""An HTTP/2 server with faults that no correct server has.

usage: http2.py PORT RECORD [CERTIFICATE KEY]    in plain text, by prior knowledge, without a certificate

Before its response, every request is written as a line of JSON to the file RECORD: connection and stream (numbers), method, path,
authority, length and SHA-256 of the body.

/echo                that object
/bytes/N             N bytes of the tests' pattern with a length; /unsized/N without
/reset/CODE          RST_STREAM before any response; /reset-after/CODE right after the head and 3 of 10 bytes;
                     /reset-later/CODE when the client has received these
/refuse/N?id=X       REFUSED_STREAM the first N times, then the echo
/goaway?id=X         every other time a GOAWAY that declares the request unprocessed, and the end; then the echo
/goaway-always       always the GOAWAY
/length/N            content-length: 10 and N bytes
/field?value=V       a header field with this value, percent-decoded
/cut/N               head, N bytes and the end of the connection, without the end of the stream
/silence             the head, and then nothing

Every head has a cookie, which is a secret like any other.
"""

import functools
import hashlib
import json
import re
import socket
import ssl
import sys
import threading
import urllib.parse

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings

lock = threading.Lock()
seen = {}
connections = 0


class Stream:
    def __init__(self, number, headers):
        self.number = number
        self.fields = dict(headers)
        url = urllib.parse.urlsplit(self.fields[":path"])
        self.path, self.query = url.path, dict(urllib.parse.parse_qsl(url.query))
        self.digest, self.length = hashlib.sha256(), 0
        self.rest = b""
        self.ends = True


class Connection:
    def __init__(self, sock, number):
        self.sock, self.number = sock, number
        self.streams = {}
        self.is_open = True
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(
                client_side=False, header_encoding="utf-8",
                validate_outbound_headers=False, normalize_outbound_headers=False))

    def run(self):
        self.h2.initiate_connection()
        self.h2.update_settings({h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 100})
        self.flush()
        while self.is_open and (data := self.sock.recv(65536)):
            for event in self.h2.receive_data(data):
                self.take(event)
                if not self.is_open:
                    break
            self.pump()
            self.flush()

    def flush(self):
        if data := self.h2.data_to_send():
            self.sock.sendall(data)

    def take(self, event):
        if isinstance(event, h2.events.RequestReceived):
            self.streams[event.stream_id] = Stream(event.stream_id, event.headers)
        elif isinstance(event, h2.events.DataReceived):
            if stream := self.streams.get(event.stream_id):
                stream.digest.update(event.data)
                stream.length += len(event.data)
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            self.answer(self.streams[event.stream_id])
        elif isinstance(event, h2.events.StreamReset):
            self.streams.pop(event.stream_id, None)
        elif isinstance(event, h2.events.PingAckReceived):
            self.h2.reset_stream(int.from_bytes(event.ping_data[:4], "big"), event.ping_data[7])
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.is_open = False

    def answer(self, stream):
        got = {
            "connection": self.number, "stream": stream.number, "method": stream.fields[":method"],
            "path": stream.fields[":path"], "authority": stream.fields.get(":authority", ""),
            "length": stream.length, "sha256": stream.digest.hexdigest()}
        with lock:
            record.write(json.dumps(got) + "\n")
            record.flush()
        stream.got = json.dumps(got).encode()
        name, _, word = stream.path[1:].partition("/")
        route = getattr(self, "at_" + name.replace("-", "_"), self.at_echo)
        route(stream, int(word) if re.fullmatch(r"\d+", word) else 0)

    # MARK: responses

    def at_echo(self, stream, _=0):
        self.send(stream, stream.got)

    def at_bytes(self, stream, count):
        self.send(stream, pattern(count))

    def at_unsized(self, stream, count):
        self.send(stream, pattern(count), length=None)

    def at_reset(self, stream, code):
        self.h2.reset_stream(stream.number, code)

    def at_reset_after(self, stream, code):
        self.head(stream, 10)
        self.h2.send_data(stream.number, b"abc")
        self.h2.reset_stream(stream.number, code)

    def at_reset_later(self, stream, code):
        self.head(stream, 10)
        self.h2.send_data(stream.number, b"abc")
        self.h2.ping(stream.number.to_bytes(4, "big") + code.to_bytes(4, "big"))

    def at_refuse(self, stream, count):
        if self.times(stream) <= count:
            self.h2.reset_stream(stream.number, h2.errors.ErrorCodes.REFUSED_STREAM)
        else:
            self.at_echo(stream)

    def at_goaway(self, stream, _):
        if self.times(stream) % 2 == 1:
            self.at_goaway_always(stream, 0)
        else:
            self.at_echo(stream)

    def at_goaway_always(self, stream, _):
        self.h2.close_connection(h2.errors.ErrorCodes.NO_ERROR, last_stream_id=0)
        self.end()

    def at_length(self, stream, count):
        self.send(stream, b"x" * count, length=10)

    def at_field(self, stream, _):
        self.head(stream, 0, ("x-field", stream.query["value"]), end=True)

    def at_cut(self, stream, count):
        self.head(stream, None)
        stream.rest, stream.ends = pattern(count), False
        self.pump()
        self.end()

    def at_silence(self, stream, _):
        self.head(stream, 10)

    # MARK: parts

    def times(self, stream):
        with lock:
            seen[stream.fields[":path"]] = seen.get(stream.fields[":path"], 0) + 1
            return seen[stream.fields[":path"]]

    def head(self, stream, length, *fields, end=False):
        sized = [] if length is None else [("content-length", str(length))]
        cookie = ("set-cookie", "id=canary-set-cookie")
        self.h2.send_headers(stream.number, [(":status", "200"), cookie, *sized, *fields], end_stream=end)

    def send(self, stream, body, length=-1):
        self.head(stream, len(body) if length == -1 else length, end=not body)
        stream.rest = body
        self.pump()

    def pump(self):
        """Sends what the windows allow, stream by stream, so that all progress together."""
        if not self.is_open:
            return
        moved = True
        while moved:
            moved = False
            for stream in list(self.streams.values()):
                if not hasattr(stream, "got") or not stream.rest:
                    continue
                room = min(self.h2.local_flow_control_window(stream.number), self.h2.max_outbound_frame_size)
                if room <= 0:
                    continue
                piece, stream.rest = stream.rest[:room], stream.rest[room:]
                self.h2.send_data(stream.number, piece, end_stream=stream.ends and not stream.rest)
                moved = True
                if not stream.rest and stream.ends:
                    del self.streams[stream.number]

    def end(self):
        self.flush()
        self.is_open = False


@functools.cache
def pattern(count):
    return bytes((index * 31 + (index >> 8)) & 255 for index in range(count))


def serve(sock, number):
    try:
        if context:
            sock = context.wrap_socket(sock, server_side=True)
        Connection(sock, number).run()
    except (OSError, ssl.SSLError):
        pass
    finally:
        sock.close()


context = None
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3], sys.argv[4])
    context.set_alpn_protocols(["h2"])
record = open(sys.argv[2], "a")
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=512)
while True:
    accepted, _ = listener.accept()
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connections += 1
    threading.Thread(target=serve, args=(accepted, connections), daemon=True).start()
