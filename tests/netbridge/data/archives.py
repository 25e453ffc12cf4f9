"""Small archives in the official formats, and a server that can drop the line."""

import contextlib
import hashlib
import http.server
import io
import tarfile
import threading

import numpy as np

from netbridge.data.sources import Archive


def archive(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def pictures(count: int, size: int, seed: int = 0):
    """(images (N, 3, size, size), labels below 10), all different."""
    chance = np.random.default_rng(seed)
    return chance.integers(0, 256, (count, 3, size, size), np.uint8), chance.integers(0, 10, count).astype(np.uint8)


def cifar10(images, labels) -> bytes:
    """Five training batches of a sixth of the images each, and a test batch."""
    rows = np.concatenate([labels[:, None], images.reshape(len(images), -1)], axis=1).astype(np.uint8)
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    parts = np.split(rows, 6)
    return archive({f"cifar-10-batches-bin/{n}": p.tobytes() for n, p in zip(names, parts, strict=True)})


def cifar100(images, coarse, fine) -> bytes:
    rows = np.concatenate([coarse[:, None], fine[:, None], images.reshape(len(images), -1)], axis=1).astype(np.uint8)
    train, test = np.split(rows, 2)
    return archive({"cifar-100-binary/train.bin": train.tobytes(), "cifar-100-binary/test.bin": test.tobytes()})


def stl10(images, labels) -> bytes:
    """Images column by column, labels from 1, half of them for testing."""
    members = {}
    for part, x, y in zip(("train", "test"), np.split(images, 2), np.split(labels, 2), strict=True):
        members[f"stl10_binary/{part}_X.bin"] = x.swapaxes(2, 3).tobytes()
        members[f"stl10_binary/{part}_y.bin"] = (y + 1).tobytes()
    return archive(members)


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


class Server:
    """Serves one file under any name; `cut` bytes into an answer the line drops, once. `asked` lists the ranges."""

    def __init__(self, content: bytes, ranges: bool = True):
        self.content, self.ranges, self.cut, self.asked = content, ranges, None, []

    def at(self, name: str) -> Archive:
        return Archive(f"http://127.0.0.1:{self.port}/{name}", md5(self.content))


@contextlib.contextmanager
def serving(content: bytes, ranges: bool = True):
    server = Server(content, ranges)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked = self.headers.get("Range")
            server.asked.append(asked)
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and server.ranges else 0
            if start and start >= len(server.content):
                self.send_error(416)
                return
            body = server.content[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            cut, server.cut = server.cut, None
            self.wfile.write(body[:cut])

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        server.port = listener.server_address[1]
        thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown()
            thread.join()
