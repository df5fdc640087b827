"""The first program on a host: it receives missing or damaged code from the launcher, and runs verbs of that code.

``PYTHON -c`` reads this file's text from stdin, so the file imports no other module of ours. Every Python can parse it,
also one that is too old, which the program then reports. The program reads one JSON line, {"workdir", "code": {kind:
hash}, "verb", "stay"}, and answers with the missing kinds of code. For each missing kind it reads a line with a length,
and then that number of bytes of tar.gz. Then it runs the verb with the same stdin and stdout, in the same process,
which saves a start of Python on every host. Finally it waits at most "stay" seconds for the next JSON line: a launcher
that was cut off sends nothing, not even an end of file.

Code is identified by the hash of its manifest, {name: [mode, size, sha256]}, a file in the code's folder. Every byte of
the launcher's own code must match before a verb runs it. Each file of a job's code must exist with its size; before a
run starts, its content must match, too. The launcher sends missing, truncated or changed code again, and the program
replaces it once the new code is on the disk. The program runs no code that another user may have written: from the
working folder down, no other user may own or write a folder on the path to the code.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: UP031, UP036

import errno
import json
import os
import select
import stat
import sys

GREETING_S = 60.0  # for the first line
MANIFEST = ".manifest"
FOLDERS = ("code", "envs", "locks", "runs", "state")
ELSEWHERE = "give the key workdir a folder of your own"


def read_line():
    # Byte by byte, without a buffer: the following bytes belong to the verb.
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            os._exit(0)  # the launcher has ended: no cleanup of the interpreter is needed
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
        if not os.path.isdir(folder):  # else the folder existed, or another launcher was first
            raise


def refusal(workdir):
    """Return {"error", "kind", "advice"} if another user could change the code that runs here; else None."""
    mode = os.stat(workdir).st_mode
    if mode & 0o022 and mode & stat.S_ISVTX:
        # As in /tmp, any user may create a folder there: create all folders now, unless another user already has.
        for name in FOLDERS:
            make(os.path.join(workdir, name))
    below = [os.path.join(workdir, name) for name in FOLDERS]
    found = [foreign(workdir, stat.S_ISVTX)] + [foreign(path) for path in below if os.path.lexists(path)]
    return next((why for why in found if why), None)


def foreign(path, accepted=0):
    """Return {"error", "kind", "advice"} if another user could change a folder's content; else None.

    Other users may have write access to a folder if its mode has a bit of ``accepted``.
    """
    for status in (os.lstat(path), os.stat(path)):  # the owner of a link can change the link
        if status.st_uid not in (0, os.geteuid()):
            own, found = user(os.geteuid()), user(status.st_uid)
            why = "%s: expected a folder owned by %s, found one owned by %s" % (path, own, found)
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
    """Return whether a folder has every file of its manifest.

    With ``to_the_byte``, every byte must match, which takes a second for each 300 MB. Otherwise only sizes must match.
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
    _, size, digest = sent  # the mode is not checked: some file systems do not store it
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode) or status.st_size != size:
        return False
    if to_the_byte:
        with open(path, "rb") as file:
            return hashed(file.read()) == digest
    return True


def renew(folder):
    if os.access(folder, os.W_OK):
        os.utime(folder, None)  # so the removal of unused code spares the folder


def hashed(data):
    import hashlib  # loads OpenSSL, which a refusal does not need

    return hashlib.sha256(data).hexdigest()


def unpack(data, digest, folder):
    # Loaded here, since mostly there is no code to unpack.
    import io
    import shutil
    import tarfile
    import tempfile
    import time
    import zlib

    partial = tempfile.mkdtemp(prefix=".", dir=folder)
    try:
        with tarfile.open(fileobj=io.BytesIO(zlib.decompress(data, 31)), mode="r:") as archive:
            # Our launcher wrote the archive, and the code below checks it; newer Pythons require a filter.
            archive.extraction_filter = lambda member, path: member  # type: ignore[attr-defined]
            for member in archive.getmembers():
                member.mtime = int(time.time())  # a bundle has no times: a cleanup by age would remove it
            archive.extractall(partial)
        if not is_whole(partial, digest, True):
            raise ValueError("the code arrived damaged")
        sync(partial)
        put(partial, os.path.join(folder, digest), digest)
    except (tarfile.TarError, zlib.error):
        raise ValueError("the code arrived damaged")  # noqa: B904 (Python 2 has no "from")
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def sync(folder):
    """Flush a folder and its files from the kernel's cache to the disk.

    Otherwise a power cut could leave files of the right size without their content. Threads flush the files in
    parallel: the file system then writes its journal a few times, not once for each file.
    """
    from concurrent.futures import ThreadPoolExecutor

    found = [os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names]
    folders = [parent for parent, _, _ in os.walk(folder)]
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(to_disk, found + folders))


def to_disk(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot do this for a folder
            raise
    finally:
        os.close(handle)


def put(partial, target, digest):
    """Move code from the folder ``partial`` to ``target``; replace the files of a damaged copy there."""
    try:
        os.rename(partial, target)
        to_disk(os.path.dirname(target))
        return
    except OSError:
        if not os.path.isdir(target):
            raise
    if is_whole(target, digest, True):
        return  # another launcher was first
    for parent, _, names in os.walk(partial):
        below = os.path.join(target, os.path.relpath(parent, partial))
        make(below)
        for name in names:  # each atomically: a reader meanwhile sees one or the other
            os.rename(os.path.join(parent, name), os.path.join(below, name))


def has_code(greeting, workdir):
    folder = os.path.join(workdir, "code")
    try:
        make(folder)
        why = refusal(workdir)
        if why:
            tell(why)
            return False
        code = greeting["code"]
        for kind in code:
            renew(os.path.join(folder, code[kind]))
        read = list(code) if greeting["verb"] == "start" else ["launcher"]  # each byte of these
        missing = [kind for kind in code if not is_whole(os.path.join(folder, code[kind]), code[kind], kind in read)]
        tell({"missing": sorted(missing), "python": sys.version.split()[0]})
        for kind in sorted(missing):
            unpack(read_exactly(int(read_line())), code[kind], folder)
    except (OSError, ValueError) as error:
        why = "%s%s" % (getattr(error, "strerror", None) or error, room(error, folder))
        tell({"error": "cannot write the code under %s: %s" % (folder, why), "kind": "disk"})
        return False
    return True


def room(error, folder):
    """Return a text about the full disk and its free space if ``error`` comes from a full disk; else ""."""
    if getattr(error, "errno", None) != errno.ENOSPC:
        return ""
    folder = os.path.realpath(folder)
    while not (os.path.exists(folder) and os.path.ismount(folder)):
        folder = os.path.dirname(folder)
    disk = os.statvfs(folder)
    left = disk.f_bavail * disk.f_frsize / 1e6
    return "; the disk at %s has %.1f MB and %d files left" % (folder, left, disk.f_favail)


def outlive_cut_bytecode():
    """Make an import compile the source if a full disk has truncated the file of bytecode.

    Otherwise the import raises EOFError before Python 3.14. The agent of the next run removes such bytecode.
    """
    from importlib.machinery import SourceFileLoader

    read = SourceFileLoader.get_code

    def get_code(self, name):
        try:
            return read(self, name)
        except (EOFError, ValueError, TypeError):
            path = self.get_filename(name)
            return self.source_to_code(self.get_data(path), path)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


def run(verb, code):
    outlive_cut_bytecode()
    os.chdir(code)
    if code not in sys.path:
        sys.path.insert(0, code)
    from launch.agent.__main__ import run

    run(verb)


def main():
    os.umask(0o077)  # other users can read no file that is created from here on
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
