"""First contact with a host: takes the shipped code that is not there yet, and runs verbs of it.

The launcher has ``PYTHON -c`` read this file's text from stdin, so it stands alone, and its
syntax is one that every Python can read, to be able to say that this one is too old. It
reads one JSON line, {"workdir", "code": {kind: hash}, "verb", "stay"}, answers with the kinds
it lacks, reads for each a line with a length and so many bytes of tar.gz, and then runs
the verb on the same stdin and stdout, in this very process: a start of Python less on every
host. It then reads the next such line, and waits for it so many seconds as "stay" says: a
launcher that was cut off says nothing, not even goodbye.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: UP031, UP036

import json
import os
import select
import sys

GREETING_S = 60.0  # for the first such line


def read_line():
    # Byte by byte, past no buffer: what follows belongs to the verb.
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            os._exit(0)  # the launcher has gone: nothing here needs the interpreter's own goodbye
        line += byte
    return line.decode()


def read_exactly(length):
    parts = []
    while length:
        part = os.read(0, min(length, 1 << 20))
        if not part:
            sys.exit(0)
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def tell(values):
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def make(folder):
    try:
        os.makedirs(folder, 0o700)
    except OSError:
        if not os.path.isdir(folder):  # else it was there, or another launcher was first
            raise


def unpack(data, digest, folder):
    # Loaded here, since most of the time there is nothing to unpack.
    import hashlib
    import io
    import shutil
    import tarfile
    import tempfile

    if hashlib.sha256(data).hexdigest()[:16] != digest:
        raise ValueError("the code arrived damaged")
    partial = tempfile.mkdtemp(prefix=".", dir=folder)
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            # Made by our own launcher and checked above; newer Pythons want this said.
            archive.extraction_filter = lambda member, path: member  # type: ignore[attr-defined]
            archive.extractall(partial)
        os.rename(partial, os.path.join(folder, digest))
    except tarfile.TarError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise ValueError("the code arrived damaged: %s" % error)  # noqa: B904 (Python 2 has no "from")
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)
        if not os.path.isdir(os.path.join(folder, digest)):  # else another launcher was first
            raise


def has_code(greeting, folder):
    try:
        make(folder)
        code = greeting["code"]
        missing = sorted(kind for kind in code if not os.path.isdir(os.path.join(folder, code[kind])))
        tell({"missing": missing, "python": sys.version.split()[0]})
        for kind in missing:
            unpack(read_exactly(int(read_line())), code[kind], folder)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        tell({"error": "cannot write the code under %s: %s" % (folder, why)})
        return False
    return True


def run(verb, code):
    os.chdir(code)
    if code not in sys.path:
        sys.path.insert(0, code)
    from launch.agent.__main__ import run

    run(verb)


def main():
    os.umask(0o077)  # nothing that begins here is for others to read
    if sys.version_info < (3, 7):
        tell({"error": "expected Python 3.7 or newer, found %s at %s" % (sys.version.split()[0], sys.executable)})
        return
    patience = GREETING_S
    while patience and select.select([0], [], [], patience)[0]:
        greeting = json.loads(read_line())
        folder = os.path.join(os.path.abspath(os.path.expanduser(greeting["workdir"])), "code")
        if not has_code(greeting, folder):
            return
        run(greeting["verb"], os.path.join(folder, greeting["code"]["launcher"]))
        patience = greeting.get("stay")


main()
