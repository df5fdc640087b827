#!/bin/bash
# Runs a command in a copy of this checkout as on a fresh machine: by a user without rights and with an empty home, where
# nobody installed the packages of the fake hosts. As root; nothing is changed outside the command's own namespaces.
#
#   tests/fresh.sh make test
#
# The copy has no environment yet: the command builds one. Everything ends, and the copy goes, with the command.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(chromium iproute2 munge nftables openssh-client openssh-server podman procps slurm-client slurmctld slurmd)
user=54321 # of nobody here
network='^((PIP|UV)_.*|.*_(proxy|PROXY)|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE)$' # how packages are reached

# ---- in the namespaces: what a fresh machine looks like

layered() { # FOLDER: from now on, changes to it are this namespace's alone
    mkdir -p "/mnt/layers$1/upper" "/mnt/layers$1/work"
    mount -t overlay layer -o "lowerdir=$1,upperdir=/mnt/layers$1/upper,workdir=/mnt/layers$1/work" "$1"
}

extended() { # FILE LINE: not the whole folder, since containers mount other files of /etc
    cp "$1" "/mnt/layers/${1##*/}"
    echo "$2" >>"/mnt/layers/${1##*/}"
    mount --bind "/mnt/layers/${1##*/}" "$1"
}

programs() {
    dpkg-query --listfiles "${packages[@]}" 2>/dev/null | grep -E '^(/usr)?/s?bin/.' || true
}

become_fresh() { # SCRATCH
    mount --bind "$1" /mnt
    mkdir /mnt/layers
    mount -t tmpfs layers /mnt/layers
    local folder
    for folder in /usr/bin /usr/sbin; do
        layered "$folder"
    done
    programs | xargs --no-run-if-empty rm -f
    extended /etc/passwd "fresh:x:$user:$user::/mnt/home:/bin/bash"
    extended /etc/group "fresh:x:$user:"
    if [ -d /root ]; then # pyenv's and uv's Pythons are often here
        layered /root
        chmod 755 /root
    fi
    mount --bind /mnt/tmp /tmp
    ! command -v sshd ssh nft ip chromium srun slurmd munged || exit 3 # still there: they came from elsewhere
}

if [ "${1:-}" = --inside ]; then
    scratch=$2
    shift 2
    mapfile -t settings < <(compgen -e | grep -E "$network" || true)
    kept=("PATH=$PATH")
    for name in "${settings[@]}"; do
        kept+=("$name=${!name}")
    done
    become_fresh "$scratch"
    cd /mnt/checkout
    # Not in place of this shell: it is process 1 here, and takes leave of those that lost their parents.
    setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all --reset-env \
        env "${kept[@]}" "$@" </dev/null
    exit
fi

# ---- outside: the copy

if [ "$(id -u)" != 0 ]; then
    echo "tests/fresh.sh: expected root, which hides programs from the command, found user $(id -un); try it with sudo." >&2
    exit 2
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/checkout" "$scratch/home" "$scratch/tmp"
chmod 755 "$scratch"
tar --create --exclude-vcs --exclude=__pycache__ --exclude='*.egg-info' --exclude='./.venv*' --exclude=./build \
    --exclude=./.cache --exclude='./.*_cache' --exclude=./.hypothesis . | tar --extract --directory="$scratch/checkout"
chown -R "$user:$user" "$scratch/checkout" "$scratch/home" "$scratch/tmp"
unshare --mount --pid --fork --kill-child --mount-proc "$0" --inside "$scratch" "$@"
