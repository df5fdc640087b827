#!/bin/sh
# Regenerates every lock file next to this script from the .in files, with hashes.
# Uses the uv named by $UV or found on PATH, else one from PyPI in a temporary environment.
set -eu
cd "$(dirname "$0")"

uv=${UV:-$(command -v uv || true)}
if [ -z "$uv" ]; then
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    python3 -m venv "$scratch/uv"
    "$scratch/uv/bin/pip" install --quiet uv
    uv=$scratch/uv/bin/uv
fi

# TensorFlow 1.15 has wheels for one platform; the second runtime's lock serves every Python it names.
compile() { # lock file, runtime, further arguments
    case $2 in
    tf1) set -- "$@" --python-version 3.7 --python-platform x86_64-manylinux2014 ;;
    tf2) set -- "$@" --python-version 3.9 --universal ;;
    esac
    output=$1
    shift 2
    "$uv" --no-config pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-emit-find-links \
        --custom-compile-command "make lock" --output-file "$output" "$@"
}

for runtime in tf1 tf2; do
    compile "$runtime.lock" "$runtime" "$runtime.in"
    compile "test-$runtime.lock" "$runtime" "$runtime.in" test.in --constraint "$runtime.lock"
    compile "plots-$runtime.lock" "$runtime" plots.in --constraint "test-$runtime.lock"
done
