"""What lies on the host and no sandbox may reach."""

import ctypes
import json
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading


class Bait:
    """A file, a process, sockets on every address, an abstract socket and shared memory, all with one marker."""

    def __init__(self):
        self.marker = "bait" + secrets.token_hex(12)
        self.touched: list[str] = []
        self._folder = tempfile.mkdtemp(prefix="attacks-")
        os.chmod(self._folder, 0o755)
        self.file = os.path.join(self._folder, "bait")
        with open(self.file, "w") as file:
            file.write(self.marker)
        os.chmod(self.file, 0o666)
        self.process = subprocess.Popen(["sleep", "86400"], executable=shutil.which("sleep"), env={"BAIT": self.marker})
        self._tcp = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)
        self.port = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self._udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self._udp.bind(("::", self.port))
        self._abstract = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._abstract.bind("\0" + self.marker)
        self._abstract.listen()
        self.key = secrets.randbelow(1 << 30) + 1
        self._shm = ctypes.CDLL(None).shmget(self.key, 4096, 0o1666)
        for watch in (self._accept, self._receive, self._greet):
            threading.Thread(target=watch, daemon=True).start()

    def _accept(self):
        while True:
            connection, peer = self._tcp.accept()
            self.touched.append(f"tcp from {peer[0]}")
            connection.sendall(self.marker.encode())
            connection.close()

    def _receive(self):
        while True:
            _, peer = self._udp.recvfrom(2048)
            self.touched.append(f"udp from {peer[0]}")
            self._udp.sendto(self.marker.encode(), peer)

    def _greet(self):
        while True:
            self._abstract.accept()[0].close()
            self.touched.append("abstract socket")

    def check(self):
        """Takes the bait from the host itself: bait that nobody can reach proves nothing."""
        for address in ("127.0.0.1", "::1"):
            with socket.create_connection((address, self.port), 5) as connection:
                if connection.recv(64) != self.marker.encode():
                    raise RuntimeError("the bait does not answer by TCP")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagram:
            datagram.settimeout(5)
            datagram.sendto(b"x", ("127.0.0.1", self.port))
            if datagram.recv(64) != self.marker.encode():
                raise RuntimeError("the bait does not answer by UDP")

    def intact(self) -> bool:
        """Whether nobody wrote the file and the process lives."""
        with open(self.file) as file:
            return file.read() == self.marker and self.process.poll() is None

    def description(self) -> str:
        """What the attack is told, as JSON."""
        listing = json.loads(subprocess.check_output(["ip", "-j", "addr"]))
        addresses = [a["local"] for link in listing for a in link["addr_info"]]
        return json.dumps({
            "marker": self.marker, "file": self.file, "port": self.port, "key": self.key, "addresses": addresses,
            "pid": self.process.pid, "data": os.environ.get("ATTACKS_DATA", ""),
            "server": os.environ.get("E2B_API_URL", ""), "host_name": socket.gethostname(),
        })

    def remove(self):
        self.process.kill()
        self.process.wait()
        ctypes.CDLL(None).shmctl(self._shm, 0, None)
        shutil.rmtree(self._folder)
