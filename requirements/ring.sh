#!/bin/sh
# Builds .venv-ring: the first runtime and Horovod, with whose ring `make bench-speed` compares; or finds that it is there.
# It compiles for some minutes and needs cmake and g++. RING=FOLDER in place of .venv-ring: the fake hosts must see it.
set -eu
unset CDPATH
root=$(cd "$(dirname "$0")/.." && pwd)
ring=${RING:-$root/.venv-ring}
version=0.21.3 # builds with TensorFlow 1.15 and its C++11
sha256=dee8b2387b1ec9f54fe1737a95b992a52ce20cb3f1a4388017215fae14978f95

VENV=$ring RUNTIME=tf1 "$root/requirements/bootstrap.sh" run
"$ring/bin/python" -c 'import horovod.tensorflow' 2>/dev/null && exit

for tool in cmake g++; do
    command -v "$tool" >/dev/null || {
        echo "ring.sh: expected $tool on PATH, found none; apt-get install cmake g++" >&2
        exit 1
    }
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$ring/bin/pip" download --quiet --no-deps --no-binary :all: --no-build-isolation "horovod==$version"
echo "$sha256  horovod-$version.tar.gz" | sha256sum --check --quiet
tar xzf "horovod-$version.tar.gz"
# Newer compilers want headers that it forgets, and refuse a struct with which Gloo asks for the speed of a card.
export CXXFLAGS='-w -include array -include string -include cstdint -include limits -include stdexcept'
sed -i 's/KERNEL_VERSION(4,6,0)/KERNEL_VERSION(99,0,0)/' "horovod-$version/third_party/gloo/gloo/common/linux.cc"
export HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1
"$ring/bin/pip" install --quiet cloudpickle==2.2.1 psutil==7.2.2
"$ring/bin/pip" install --no-deps --no-cache-dir --no-build-isolation "./horovod-$version" >"$ring/horovod.log" 2>&1 || {
    echo "ring.sh: Horovod could not be built; see $ring/horovod.log" >&2
    exit 1
}
