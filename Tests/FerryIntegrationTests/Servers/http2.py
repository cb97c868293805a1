"""An HTTP/2 server with faults that no correct server has.

usage: http2.py PORT RECORD [CERTIFICATE KEY]    in plain text, by prior knowledge, without a certificate

Before its response, every request is written as a line of JSON to the file RECORD: connection and stream (numbers), method, path,
authority, length and SHA-256 of the body. Other lines have a "kind": "end" is the same and the trailers when the request has ended,
and how ("ended" by END_STREAM, "reset" by RST_STREAM with a "code", "closed" with the connection); "violation" is what a client did
against the rules, and the path of the last request on its connection.

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

Routes below /live/ respond to the head of the request, with ?after=N to N bytes of its body; its line in RECORD is without a body.
An echo has no length, and opens the windows of the request only for what was sent back. It ends with the request, and with
?trailers=1 with a trailer "x-end: yes". The other routes go on reading the request.

/live/echo           the echo; /live/ping with PING and SETTINGS before every piece
/live/early/N        N bytes of the pattern and the end of the stream; ?length=L for a content-length, ?trailers=1, ?goaway=1 for a
                     GOAWAY before; with ?slow=1 the request has a large window and is read slowly, with a PING for each piece
/live/early-reset/C  head, "hello", the end of the stream and RST_STREAM with the code C at once; /live/reset-open/C without the end
/live/stall          the head; the windows of the request are never opened
/live/status/N       this status with "no" and the end of the stream; ?location=L
/live/continue       to Expect: 100-continue first a 100, then an echo. The request's end has "early": the bytes before the 100
/live/hints          a 103 with a link; after the first byte an echo
/live/goaway-after   an echo; a GOAWAY after its head that names this stream as the last
/live/goaway-before  the first time a GOAWAY that declares the request unprocessed, and the end; then an echo
/live/refuse/N?id=X  REFUSED_STREAM the first N times, then an echo
/live/flood/N        an echo; after its head N frames of SETTINGS, during which nothing is read
/live/cut/N          head, N bytes and the end of the connection, without the end of the stream

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
import time
import urllib.parse

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import hyperframe.frame

lock = threading.Lock()
seen, connections = {}, 0


class Stream:
    def __init__(self, number, headers):
        self.number, self.fields = number, dict(headers)
        url = urllib.parse.urlsplit(self.fields[":path"])
        self.path, self.query = url.path, dict(urllib.parse.parse_qsl(url.query))
        self.digest, self.length, self.trailers, self.early = hashlib.sha256(), 0, {}, None
        self.rest, self.ends = b"", False  # what is still to be sent; whether the end follows it
        self.is_ended = self.is_answered = False  # both ends of the stream
        self.is_live = self.path.startswith("/live/")
        if self.is_live:
            _, _, self.name, word = (self.path + "/").split("/", 3)
            self.word = int(word.strip("/") or 0)
            self.after, self.has_begun = int(self.query.get("after", 0)), False
            self.received, self.use = b"", "hold"  # what has arrived; its use: hold, take, echo

    def described(self, connection):
        return {
            "connection": connection, "stream": self.number, "method": self.fields[":method"],
            "path": self.fields[":path"], "authority": self.fields.get(":authority", ""),
            "length": self.length, "sha256": self.digest.hexdigest()}


class Connection:
    def __init__(self, sock, number):
        self.sock, self.number, self.streams = sock, number, {}
        self.path, self.is_open = "", True
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=False, header_encoding="utf-8", validate_outbound_headers=False, normalize_outbound_headers=False))
        self.h2.decoder.max_header_list_size = 1 << 20

    def run(self):
        try:
            self.serve()
        except h2.exceptions.ProtocolError as error:
            write({"kind": "violation", "path": self.path, "words": f"{type(error).__name__}: {error}"})
        finally:
            for stream in self.streams.values():
                self.note_end(stream, "closed")

    def serve(self):
        self.h2.initiate_connection()
        self.h2.update_settings({h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 100})
        self.flush()
        while self.is_open and (data := self.sock.recv(65536)):
            for event in self.h2.receive_data(data):
                if self.is_open:
                    self.take(event)
            self.pump()
            self.flush()

    def flush(self):
        if data := self.h2.data_to_send():
            self.sock.sendall(data)

    def take(self, event):
        stream = self.streams.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.RequestReceived):
            stream = self.streams[event.stream_id] = Stream(event.stream_id, event.headers)
            self.path = stream.fields[":path"]
            if stream.is_live:
                write(stream.described(self.number))
                for number in [None, stream.number] if "slow" in stream.query else []:
                    self.h2.increment_flow_control_window(1 << 24, number)
                self.follow(stream)
        elif isinstance(event, h2.events.DataReceived):
            if stream:
                stream.digest.update(event.data)
                stream.length += len(event.data)
            held = len(event.data) if stream and stream.is_live else 0
            self.h2.acknowledge_received_data(event.flow_controlled_length - held, event.stream_id)
            if held:
                stream.received += event.data
                if "slow" in stream.query:
                    self.h2.ping(bytes(8))
                    time.sleep(0.002)
                self.follow(stream)
        elif isinstance(event, h2.events.TrailersReceived) and stream:
            stream.trailers = dict(event.headers)
        elif isinstance(event, h2.events.StreamEnded) and stream:
            self.note_end(stream, "ended")
            (self.follow if stream.is_live else self.answer)(stream)
        elif isinstance(event, h2.events.StreamReset) and stream:
            self.note_end(stream, "reset", int(event.error_code))
            del self.streams[event.stream_id]
        elif isinstance(event, h2.events.PingAckReceived) and any(event.ping_data):
            self.take_pong(int.from_bytes(event.ping_data[:4], "big"), event.ping_data[7])
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.is_open = False

    def take_pong(self, number, code):
        stream = self.streams.get(number)
        if stream and stream.is_live:
            stream.early = stream.length
            self.h2.send_headers(number, [(":status", "100")])
            stream.name, stream.has_begun = "echo", False
            self.follow(stream)
        elif stream:
            self.h2.reset_stream(number, code)

    def note_end(self, stream, end, code=None):
        if not stream.is_ended:
            stream.is_ended = True
            got = {"kind": "end", "end": end, "code": code, "trailers": stream.trailers, "early": stream.early}
            write(stream.described(self.number) | got)

    def answer(self, stream):
        got = stream.described(self.number)
        write(got)
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
        self.at_echo(stream) if self.times(stream) > count else self.at_refuse_always(stream)

    def at_refuse_always(self, stream, _=0):
        self.h2.reset_stream(stream.number, h2.errors.ErrorCodes.REFUSED_STREAM)

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
        stream.rest = pattern(count)
        self.pump()
        self.end()

    def at_silence(self, stream, _):
        self.head(stream, 10)

    # MARK: responses before the end of the request

    def follow(self, stream):
        """Begins the response when it is due, and does with what has arrived what the route says."""
        if not stream.has_begun and stream.length >= stream.after:
            stream.has_begun, stream.use = True, "take"
            getattr(self, "live_" + stream.name.replace("-", "_"))(stream)
        if stream.use == "echo":
            stream.rest, stream.ends = stream.rest + stream.received, stream.is_ended
        elif stream.use == "take":
            self.h2.acknowledge_received_data(len(stream.received), stream.number)
        stream.received = stream.received if stream.use == "hold" else b""
        stream.is_ended and stream.is_answered and self.streams.pop(stream.number, None)

    def live_echo(self, stream):
        self.head(stream, None)
        stream.use = "echo"

    live_ping = live_echo

    def live_early(self, stream):
        self.head(stream, stream.query.get("length"))
        stream.rest, stream.ends = pattern(stream.word), True
        if "goaway" in stream.query:
            self.send_frames(hyperframe.frame.GoAwayFrame(0, last_stream_id=stream.number))

    def live_status(self, stream):
        self.head(stream, 2, *[pair for pair in stream.query.items() if pair[0] == "location"], status=stream.word)
        stream.rest, stream.ends = b"no", True

    def live_reset_open(self, stream):
        self.head(stream, stream.query.get("length"))
        self.h2.send_data(stream.number, b"hello", end_stream=stream.name == "early-reset")
        self.h2.reset_stream(stream.number, stream.word)

    live_early_reset = live_reset_open

    def live_stall(self, stream):
        self.head(stream, None)
        stream.use = "hold"

    def live_continue(self, stream):
        if stream.fields.get("expect") != "100-continue":
            return self.live_echo(stream)
        stream.use = "hold"
        # A client that does not wait has sent something by the time it responds to this.
        self.h2.ping(stream.number.to_bytes(4, "big") + bytes(4))

    def live_hints(self, stream):
        self.h2.send_headers(stream.number, [(":status", "103"), ("link", "</a.css>")])
        stream.name, stream.after, stream.has_begun = "echo", 1, False

    def live_goaway_after(self, stream):
        self.live_echo(stream)
        self.send_frames(hyperframe.frame.GoAwayFrame(0, last_stream_id=stream.number))

    def live_goaway_before(self, stream):
        if self.times(stream) > 1:
            return self.live_echo(stream)
        self.at_goaway_always(stream, 0)
        self.drain()

    def live_refuse(self, stream):
        self.live_echo(stream) if self.times(stream) > stream.word else self.at_refuse_always(stream)

    def live_flood(self, stream):
        self.live_echo(stream)
        self.send_frames(hyperframe.frame.SettingsFrame(0), count=stream.word)

    def live_cut(self, stream):
        self.at_cut(stream, stream.word)
        self.drain()

    def send_frames(self, frame, count=1):
        """Sends a frame that the library would not send, or not so often."""
        self.flush()
        for at in range(0, count, 1000):
            self.sock.sendall(frame.serialize() * min(1000, count - at))

    # MARK: parts

    def times(self, stream):
        with lock:
            seen[stream.fields[":path"]] = seen.get(stream.fields[":path"], 0) + 1
            return seen[stream.fields[":path"]]

    def head(self, stream, length, *fields, status=200, end=False):
        sized = [] if length is None else [("content-length", str(length))]
        cookie = ("set-cookie", "id=canary-set-cookie")
        self.h2.send_headers(stream.number, [(":status", str(status)), cookie, *sized, *fields], end_stream=end)

    def send(self, stream, body, length=-1):
        self.head(stream, len(body) if length == -1 else length, end=not body)
        stream.rest, stream.ends = body, bool(body)
        self.pump()

    def pump(self):
        """Sends what the windows allow, stream by stream, so that all progress together."""
        while self.is_open and any([self.send_piece(stream) for stream in list(self.streams.values())]): pass

    def send_piece(self, stream):
        """The next piece, and the end behind the last one. False if there is none, or no room."""
        room = min(self.h2.local_flow_control_window(stream.number), self.h2.max_outbound_frame_size) if stream.rest else 0
        if stream.is_answered or room <= 0 and (stream.rest or not stream.ends):
            return False
        if stream.is_live and stream.name == "ping":
            self.h2.ping(bytes(8))
            most = 201 - self.h2.local_settings.max_concurrent_streams
            self.h2.update_settings({h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: most})
        piece, stream.rest = stream.rest[:room], stream.rest[room:]
        stream.is_answered = stream.ends and not stream.rest
        has_trailers = stream.is_answered and "trailers" in stream.query
        if piece or not has_trailers:
            self.h2.send_data(stream.number, piece, end_stream=stream.is_answered and not has_trailers)
        if has_trailers:
            self.h2.send_headers(stream.number, [("x-end", "yes")], end_stream=True)
        if stream.is_live and stream.use == "echo":
            self.h2.acknowledge_received_data(len(piece), stream.number)
        if stream.is_answered and stream.is_ended:
            del self.streams[stream.number]
        return True

    def drain(self):
        """Closed with bytes in it that were not read, the socket would be reset, and what was sent perhaps lost."""
        self.sock.shutdown(socket.SHUT_WR)
        while self.sock.recv(65536): pass

    def end(self):
        self.flush()
        self.is_open = False


def write(line):
    with lock:
        record.write(json.dumps(line) + "\n")
        record.flush()


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
