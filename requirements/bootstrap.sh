#!/bin/sh
# Builds the Python environment of this project from a lock file, or finds in milliseconds that it is current.
#
#   requirements/bootstrap.sh run     what `make up` needs
#   requirements/bootstrap.sh test    the same, and what `make test` and `make check` need
#   requirements/bootstrap.sh plots   the same, and what `make bench-docs` draws with
#
#   VENV      the environment's folder; default .venv
#   RUNTIME   tf1: Python 3.7 with TensorFlow 1.15; tf2: a newer Python with TensorFlow 2.x;
#             default: what is there already, else tf1, else tf2
#
# A stamp is written last. It names where the environment is and what it was built from, so one that was
# interrupted, moved, or built from another lock file is built anew. Progress goes to stdout; stderr gets
# one sentence when the environment cannot be built.
set -eu
unset CDPATH

root=$(cd "$(dirname "$0")/.." && pwd)
case ${VENV:=.venv} in
/*) venv=$VENV ;;
*) venv=$root/$VENV ;;
esac
wanted=${RUNTIME:-}
log=$venv/bootstrap.log
needed_mib=3000 # the larger runtime, and the packages that pip holds while it installs them

unset PYTHONHOME PYTHONPATH PYTHONDONTWRITEBYTECODE PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIREMENT PIP_CONSTRAINT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

main() {
    case $wanted in
    '' | tf1 | tf2) ;;
    *) fail "RUNTIME: expected tf1 or tf2, found '$wanted'; choose one or leave it out." ;;
    esac
    case ${1:-} in
    run) is_current run || build run ;;
    test) with_test ;;
    plots) is_current plots || {
        with_test
        extend plots
    } ;;
    *) fail "bootstrap.sh: expected 'run', 'test' or 'plots', found '${1:-}'; see the head of $root/requirements/bootstrap.sh." ;;
    esac
}

with_test() {
    is_current test || if is_current run; then extend test; else build test; fi
}

fail() { # sentence
    echo "$1" >&2
    exit 1
}

# ---- what is there

lock_of() { # runtime, set
    case $2 in
    run) echo "$root/requirements/$1.lock" ;;
    test | plots) echo "$root/requirements/$2-$1.lock" ;;
    esac
}

stamp() { # runtime, set
    echo "$1 $("$venv/bin/python" -I -S -c 'import sys; print(sys.version.split()[0])') $venv"
    cksum <"$(lock_of "$1" "$2")"
}

is_current() { # set
    [ -r "$venv/stamp-$1" ] || return 1
    read -r built _ <"$venv/stamp-$1" || return 1
    [ "${wanted:-$built}" = "$built" ] && stamp "$built" "$1" 2>/dev/null | cmp -s - "$venv/stamp-$1"
}

# ---- which Python

# The interpreter behind a command, when it runs, has the version and can make environments. Never one
# inside an environment: that may be the one about to be replaced.
interpreter() { # version, command
    [ -x "$2" ] || return 1
    "$2" -I -c '
import ensurepip, os, sys, venv
name = "python%d.%d" % sys.version_info[:2]
if name == "python" + sys.argv[1]:
    print(sys.executable if sys.prefix == sys.base_prefix else os.path.join(sys.base_prefix, "bin", name))
' "$1" 2>/dev/null | grep .
}

on_path() { # version
    (
        IFS=:
        for folder in $PATH; do
            interpreter "$1" "$folder/python$1" && exit
        done
        exit 1
    )
}

in_pyenv() { # version
    for versions in "${PYENV_ROOT:-${HOME:-}/.pyenv}/versions" "$(dirname "$(command -v pyenv || echo /)")/../versions"; do
        for folder in "$versions/$1".*; do
            interpreter "$1" "$folder/bin/python$1" && return
        done
    done
    return 1
}

through_uv() { # version
    command -v uv >/dev/null && interpreter "$1" "$(uv python find --system "$1" 2>/dev/null)"
}

find_python() { # version
    on_path "$1" || in_pyenv "$1" || through_uv "$1"
}

install_python() { # version
    command -v uv >/dev/null && uv python install "$1" >/dev/null 2>&1 && through_uv "$1"
}

python_for_tf1() {
    [ "$(uname -s) $(uname -m)" = "Linux x86_64" ] || return 1
    find_python 3.7 || install_python 3.7
}

python_for_tf2() {
    for version in 3.13 3.12 3.11 3.10 3.9; do
        find_python "$version" && return
    done
    install_python 3.13
}

choose_python() { # sets python and runtime
    runtime=tf1
    if [ "$wanted" != tf2 ] && python=$(python_for_tf1); then
        return
    elif [ "$wanted" = tf1 ]; then
        fail "RUNTIME=tf1 needs Python 3.7 on Linux x86_64 and none was found on PATH, in pyenv or through uv; install one (pyenv install 3.7, or uv) or choose RUNTIME=tf2."
    fi
    runtime=tf2
    python=$(python_for_tf2) ||
        fail "No Python 3.7, nor 3.9 to 3.13 with the venv module, was found on PATH, in pyenv or through uv; install one (apt install python3-venv, pyenv install 3.7, or uv) and try again."
    [ "$wanted" = tf2 ] || echo "No Python 3.7 was found: using the second runtime, $("$python" -V) with TensorFlow 2.x."
}

# ---- building

build() { # set
    refuse_a_link
    choose_python
    clear_folder
    echo "Building $venv: $("$python" -V), runtime $runtime; this takes about a minute, and longer where packages have to be downloaded."
    [ "$(free_mib)" -ge "$needed_mib" ] || full
    logged "$python" -m venv --without-pip "$venv"
    logged "$venv/bin/python" -m ensurepip --default-pip # by itself: venv would swallow what went wrong
    build_tools "$(lock_of "$runtime" "$1")" | install /dev/stdin
    install "$(lock_of "$runtime" "$1")"
    logged "$venv/bin/python" -m pip install --no-deps --no-build-isolation --editable "$root"
    compile_imports
    seal run
    [ "$1" = run ] || seal test
}

extend() { # set
    refuse_a_link
    read -r runtime _ <"$venv/stamp-run"
    case $1 in
    test) echo "Adding what the tests need to $venv." ;;
    plots) echo "Adding what the plots need to $venv." ;;
    esac
    install "$(lock_of "$runtime" "$1")"
    seal "$1"
}

# An old pip does not know today's wheels, and what comes as source is to be built by what the lock names.
build_tools() { # lock file
    sed -n -E '/^(packaging|pip|setuptools|wheel)==/,/[^\]$/p' "$1"
}

# Compiling all of TensorFlow takes longer than installing it, so only what an import needs is compiled. Left to the
# first run, each of its processes would do that at the same time; and every process of every run, where
# PYTHONDONTWRITEBYTECODE is set. Should the import fail, the run will tell it better.
compile_imports() {
    "$venv/bin/python" -W ignore -c 'import tensorflow.compat.v1' >>"$log" 2>&1 || true
}

# Downloads may take minutes, so each that a user waits for has a line. A pipe has no exit code of its first command.
install() { # lock file
    rm -f "$venv/installed"
    { mkdir -p "$venv/tmp" && TMPDIR=$venv/tmp "$venv/bin/python" -m pip install --no-deps --require-hashes \
        --no-build-isolation --no-compile --requirement "$1" && : >"$venv/installed"; } 2>&1 | narrated
    [ -e "$venv/installed" ] || explain
    rm -f "$venv/installed"
}

narrated() {
    while IFS= read -r line || [ -n "$line" ]; do
        { printf '%s\n' "$line" >>"$log"; } 2>/dev/null || : # pip itself reports a full disk
        case $line in
        *Downloading*' MB)' | *'Using cached'*' MB)')
            file=${line##*/}
            file=${file#*Downloading }
            echo "  ${file#*Using cached }"
            ;;
        'Installing collected packages: '*tensorflow*) echo "  Installing the packages." ;;
        esac
    done
}

# Temporary files lie in the environment, so that they go with it when a build was interrupted.
logged() { # command
    { mkdir -p "$venv/tmp" && TMPDIR=$venv/tmp "$@"; } >>"$log" 2>&1 || explain
}

seal() { # set
    rm -rf "$venv/tmp"
    (stamp "$runtime" "$1" >"$venv/stamp-$1") 2>>"$log" || explain
}

# Behind a link is the environment of another checkout, in which programs may run.
refuse_a_link() {
    [ ! -h "$venv" ] ||
        fail "$venv is a link, and what it leads to is not this checkout's to build or change: remove the link, or choose another folder with VENV=."
}

# Only a folder that is new, empty, or an environment is replaced. What identifies one goes last, so that
# an interrupted removal can go on.
clear_folder() {
    if [ -e "$venv" ] && [ ! -e "$venv/pyvenv.cfg" ] && [ ! -e "$log" ] && ! rmdir "$venv" 2>/dev/null; then
        fail "$venv is in the way: expected a Python environment or nothing there; move it, or choose another folder with VENV=."
    fi
    (rm -rf "${venv:?}/bin" "${venv:?}/lib" && rm -rf "$venv" && mkdir -p "$venv" && true >"$log") 2>/dev/null ||
        fail "$venv cannot be written: the folder is not yours, is read-only or its disk is full; make it writable, or choose another folder with VENV=."
}

explain() {
    if grep -q 'No space left on device' "$log"; then
        full
    elif grep -q -E 'connection broken|NewConnectionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError' "$log"; then
        fail "The package index cannot be reached; connect to the network, or name a mirror in PIP_INDEX_URL, and try again (pip's output is in $log)."
    fi
    fail "$venv could not be built ($(grep -v '^ *$' "$log" | tail -n 1)); mend that and try again (pip's output is in $log)."
}

free_mib() {
    df -Pk "$venv" | awk 'NR == 2 { print int($4 / 1024) }'
}

full() {
    fail "The disk is full: $venv needs $needed_mib MB while it is built, and $(free_mib) MB are free; free some space and try again (pip's output is in $log)."
}

main "$@"
