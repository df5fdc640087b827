"""Wheels of a few hundred bytes, and lock files that name them."""

import base64
import hashlib
import zipfile
from pathlib import Path


def tiny_wheel(folder: Path, name: str, version: str = "1.0") -> str:
    """Writes a wheel whose only module has a ``VERSION``; returns its requirement in a lock file."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = '{version}'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in files.items())
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(str(wheel), "w") as archive:
        for path, text in [*files.items(), (f"{info}/RECORD", f"{record}{info}/RECORD,,\n")]:
            archive.writestr(zipfile.ZipInfo(path), text)  # without the time, so that it has one hash
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
