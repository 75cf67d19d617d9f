"""Servers inside a sandbox, seen from outside by host name."""

import pytest
import pytest_asyncio
import websockets

from conftest import done, eventually
from environment import SCHEME, SOCKET_SCHEME

ECHO = '''
import base64, hashlib, http.server, json, sys, threading

class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen = threading.Semaphore(0)

    def do_GET(self):
        if self.headers.get("Upgrade", "").lower() == "websocket":
            return self.websocket()
        if self.path == "/events":
            return self.events()
        if self.path == "/seen":
            Echo.seen.release()
        self.answer(b"")

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def answer(self, body):
        text = json.dumps({"path": self.path, "method": self.command, "body": body.decode("latin-1"),
                           "headers": {k.lower(): v for k, v in self.headers.items()}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for number in range(3):
            self.wfile.write(b"data: %d\\n\\n" % number)
            self.wfile.flush()
            if not Echo.seen.acquire(timeout=15):
                break
        self.close_connection = True

    def websocket(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        while True:
            head = self.rfile.read(2)
            if len(head) < 2 or head[0] & 15 == 8:
                break
            size = head[1] & 127
            if size == 126:
                size = int.from_bytes(self.rfile.read(2), "big")
            mask = self.rfile.read(4)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(size)))
            frame = bytes([head[0]]) + (bytes([size]) if size < 126 else bytes([126]) + size.to_bytes(2, "big"))
            self.wfile.write(frame + data)
            self.wfile.flush()
        self.close_connection = True

    def log_message(self, *args):
        pass

http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Echo).serve_forever()
'''


async def serve(box, address, port):
    """Starts the echo server in a sandbox."""
    await done(box.files.write("/tmp/echo.py", ECHO))
    await done(box.commands.run(f"python3 /tmp/echo.py {address} {port}", background=True, timeout=0))


def url_of(box, port, path="/"):
    return f"{SCHEME}://{box.get_host(port)}{path}"


async def reachable(web, box, port, headers=None):
    async def ok():
        answer = await web.get(url_of(box, port), headers=headers)
        return answer if answer.status_code == 200 else None

    return await eventually(ok)


@pytest_asyncio.fixture(scope="module")
async def served(sandbox, web):
    await serve(sandbox, "0.0.0.0", 8000)
    await serve(sandbox, "127.0.0.1", 8001)
    for port in (8000, 8001):
        await reachable(web, sandbox, port)
    return sandbox


@pytest.mark.parametrize("port", [8000, 8001], ids=["0.0.0.0", "127.0.0.1"])
async def test_request_arrives_unchanged(served, web, port):
    answer = await web.post(url_of(served, port, "/a%20b/c;d?q=1&q=2&x=%zz"), content=b"body \xff", headers={"x-custom": "yes"})
    seen = answer.json()
    assert (seen["path"], seen["method"], seen["body"]) == ("/a%20b/c;d?q=1&q=2&x=%zz", "POST", "body ÿ")
    assert seen["headers"]["x-custom"] == "yes"
    assert seen["headers"]["host"] == served.get_host(port)
    assert not [name for name in seen["headers"] if name.startswith("isthmus")]


async def test_closed_port(served, web):
    answer = await web.get(url_of(served, 9999))
    assert answer.status_code == 502
    body = answer.json()
    assert (body["sandboxId"], body["port"], body["code"]) == (served.sandbox_id, 9999, 502)
    assert body["message"] == "The sandbox is running but port is not open"


async def test_browser_gets_a_page(served, web):
    headers = {"user-agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/130 Safari/537.36", "accept": "text/html,*/*;q=0.8"}
    answer = await web.get(url_of(served, 9999), headers=headers)
    assert answer.status_code == 502
    assert answer.headers["content-type"].startswith("text/html")


async def test_events_arrive_one_by_one(served, web):
    arrived = []
    async with web.stream("GET", url_of(served, 8000, "/events")) as answer:
        async for line in answer.aiter_lines():
            if line:
                arrived.append(line)
                await web.get(url_of(served, 8000, "/seen"))  # the next one is only sent then
    assert arrived == ["data: 0", "data: 1", "data: 2"]


@pytest.mark.parametrize("port", [8000, 8001])
async def test_websocket(served, port):
    async with websockets.connect(f"{SOCKET_SCHEME}://{served.get_host(port)}/ws", proxy=None) as socket:
        for message in ("hello", "ä" * 5000, b"\x00\xff"):
            await socket.send(message)
            assert await socket.recv() == message


async def test_after_kill(make, web):
    box = await make()
    await serve(box, "0.0.0.0", 8000)
    await reachable(web, box, 8000)
    await done(box.kill())
    answer = await web.get(url_of(box, 8000))
    assert answer.status_code == 502
    assert answer.json() == {"sandboxId": box.sandbox_id, "message": "The sandbox was not found", "code": 502}


async def test_unknown_sandbox(served, web):
    host = served.get_host(8000).replace(served.sandbox_id, "idoesnotexist000000000")
    answer = await web.get(f"{SCHEME}://{host}/")
    assert (answer.status_code, answer.json()["message"]) == (502, "The sandbox was not found")


async def test_traffic_token(make, web):
    box = await make(network={"allow_public_traffic": False})
    assert box.traffic_access_token
    await serve(box, "0.0.0.0", 8000)
    await reachable(web, box, 8000, {"e2b-traffic-access-token": box.traffic_access_token})
    answer = await web.get(url_of(box, 8000))
    assert answer.status_code == 403
    assert answer.json() == {
        "sandboxId": box.sandbox_id,
        "message": "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing",
        "code": 403,
    }
    answer = await web.get(url_of(box, 8000), headers={"e2b-traffic-access-token": "wrong"})
    assert answer.status_code == 403
    assert "is invalid" in answer.json()["message"]
    assert (await done(box.commands.run("echo envd needs none"))).exit_code == 0


async def test_mask_request_host(make, web):
    box = await make(network={"mask_request_host": "localhost:${PORT}"})
    await serve(box, "0.0.0.0", 8000)
    seen = (await reachable(web, box, 8000)).json()["headers"]
    assert seen["host"] == "localhost:8000"
    assert seen["x-forwarded-host"] == box.get_host(8000)
