"""First contact with a host: receive the shipped code that is missing or damaged, and run verbs of it.

The launcher has ``PYTHON -c`` read this file's text from stdin, so it stands alone, and its
syntax is one that every Python can read, to be able to report that this one is too old. It
reads one JSON line, {"workdir", "code": {kind: hash}, "verb", "stay"}, answers with the kinds
it lacks, reads for each a line with a length and so many bytes of tar.gz, and then runs
the verb on the same stdin and stdout, in this very process: a start of Python less on every
host. It then reads the next such line, and waits for it so many seconds as "stay" has: a
launcher that was cut off sends nothing, not even goodbye.

Code is known by the hash of its manifest, {name: [mode, size, sha256]}, which lies in its folder. It is
there when every file is there with its size; before a run starts, with its content too. What was
purged, cut short or changed is sent again and put in its place. Code that another user may have put
there is not run: from the working folder on, no other user may own or write a folder on the way to it.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: UP031, UP036

import json
import os
import select
import stat
import sys

GREETING_S = 60.0  # for the first such line
MANIFEST = ".manifest"
FOLDERS = ("code", "envs", "locks", "runs")
ELSEWHERE = "give the key workdir a folder of your own"


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


def refusal(workdir):
    """Return why another user could decide what runs here; None where nobody can."""
    mode = os.stat(workdir).st_mode
    if mode & 0o022 and mode & stat.S_ISVTX:
        # As in /tmp, anybody may make a folder there: all of them are made now, or are somebody else's already.
        for name in FOLDERS:
            make(os.path.join(workdir, name))
    below = [os.path.join(workdir, name) for name in FOLDERS]
    found = [foreign(workdir, stat.S_ISVTX)] + [foreign(path) for path in below if os.path.lexists(path)]
    return next((why for why in found if why), None)


def foreign(path, accepted=0):
    """Return how another user could change a folder's content; None where nobody can.

    The function ignores a mode that is ``accepted``.
    """
    for status in (os.lstat(path), os.stat(path)):  # a link is its owner's to change
        if status.st_uid not in (0, os.geteuid()):
            own, found = user(os.geteuid()), user(status.st_uid)
            why = "%s: expected a folder of %s, found one of %s" % (path, own, found)
            return {"error": why, "kind": "folder", "advice": ELSEWHERE}
    if status.st_mode & 0o022 and not status.st_mode & accepted:
        why = "%s: expected a folder that no other user can write, found mode %04o" % (path, status.st_mode & 0o7777)
        advice = "close it with `chmod go-w %s`, or %s" % (quoted(path), ELSEWHERE)
        return {"error": why, "kind": "folder", "advice": advice}
    return None


def quoted(path):
    import shlex

    return shlex.quote(path)


def user(number):
    import pwd

    try:
        return "%s (uid %d)" % (pwd.getpwuid(number).pw_name, number)
    except KeyError:
        return "uid %d" % number


def is_whole(folder, digest, to_the_byte):
    """Return whether all the code is in a folder.

    The check is to the byte, which takes a second for each 300 MB, or by sizes.
    """
    try:
        with open(os.path.join(folder, MANIFEST), "rb") as file:
            manifest = file.read()
        files = json.loads(manifest.decode())
        if to_the_byte and hashed(manifest)[:16] != digest:
            return False
        return all(is_as_sent(os.path.join(folder, name), files[name], to_the_byte) for name in files)
    except (OSError, ValueError, TypeError):
        return False


def is_as_sent(path, sent, to_the_byte):
    _, size, digest = sent  # its mode is not looked at: there are file systems that do not keep it
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode) or status.st_size != size:
        return False
    if to_the_byte:
        with open(path, "rb") as file:
            return hashed(file.read()) == digest
    return True


def renew(folder):
    if os.access(folder, os.W_OK):
        os.utime(folder, None)  # what removes unused code leaves it


def hashed(data):
    import hashlib  # loads OpenSSL, which most verbs do not need

    return hashlib.sha256(data).hexdigest()


def unpack(data, digest, folder):
    # Loaded here, since most of the time there is nothing to unpack.
    import io
    import shutil
    import tarfile
    import tempfile
    import time
    import zlib

    partial = tempfile.mkdtemp(prefix=".", dir=folder)
    try:
        with tarfile.open(fileobj=io.BytesIO(zlib.decompress(data, 31)), mode="r:") as archive:
            # Made by our own launcher, and checked below; newer Pythons want this said.
            archive.extraction_filter = lambda member, path: member  # type: ignore[attr-defined]
            for member in archive.getmembers():
                member.mtime = int(time.time())  # a bundle has no times: who cleans up by age would take it for old
            archive.extractall(partial)
        if not is_whole(partial, digest, True):
            raise ValueError("the code arrived damaged")
        put(partial, os.path.join(folder, digest), digest)
    except (tarfile.TarError, zlib.error):
        raise ValueError("the code arrived damaged")  # noqa: B904 (Python 2 has no "from")
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def put(partial, target, digest):
    """Move code to its place; replace the files of a copy there that is damaged."""
    try:
        os.rename(partial, target)
        return
    except OSError:
        if not os.path.isdir(target):
            raise
    if is_whole(target, digest, True):
        return  # another launcher was first
    for parent, _, names in os.walk(partial):
        below = os.path.join(target, os.path.relpath(parent, partial))
        make(below)
        for name in names:  # each at once: who reads it meanwhile reads the one or the other
            os.rename(os.path.join(parent, name), os.path.join(below, name))


def has_code(greeting, workdir):
    folder = os.path.join(workdir, "code")
    try:
        make(folder)
        why = refusal(workdir)
        if why:
            tell(why)
            return False
        code, to_the_byte = greeting["code"], greeting["verb"] == "start"
        for kind in code:
            renew(os.path.join(folder, code[kind]))
        missing = [kind for kind in code if not is_whole(os.path.join(folder, code[kind]), code[kind], to_the_byte)]
        tell({"missing": sorted(missing), "python": sys.version.split()[0]})
        for kind in sorted(missing):
            unpack(read_exactly(int(read_line())), code[kind], folder)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        tell({"error": "cannot write the code under %s: %s" % (folder, why), "kind": "disk"})
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
        found = "expected Python 3.7 or newer, found %s at %s" % (sys.version.split()[0], sys.executable)
        tell({"error": found, "kind": "python-old"})
        return
    patience = GREETING_S
    while patience and select.select([0], [], [], patience)[0]:
        greeting = json.loads(read_line())
        workdir = os.path.abspath(os.path.expanduser(greeting["workdir"]))
        if not has_code(greeting, workdir):
            return
        run(greeting["verb"], os.path.join(workdir, "code", greeting["code"]["launcher"]))
        patience = greeting.get("stay")


main()
