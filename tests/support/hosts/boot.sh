# Boots one fake host: process 1 of its namespaces, started inside the rack's.
# Arguments: DISK SEED NAME ADDRESS/PREFIX VISIBLE...
# Conversation: prints its process number as the session sees it, waits for a line (the
# cable is there), prints "up"; from then on the session waits for sshd's port.
set -eu
read -r pid _ </proc/self/stat
disk=$1 seed=$2 name=$3 address=$4
shift 4
root=$disk/root
new=$([ -e "$disk" ] || echo yes)
mkdir -p "$disk/upper" "$disk/work" "$root"
mount -t overlay fake-host -o "lowerdir=/,upperdir=$disk/upper,workdir=$disk/work" "$root"
cd "$root"
if [ "$new" ]; then
    # What this machine's own root user has there is none of the host's business.
    rm -rf root/.ssh root/.launch etc/ssh/ssh_host_*
    cp -r "$seed/." .
    # Without PAM, sshd refuses an account whose password is locked with "!".
    sed -i 's/^root:!*[^:]*:/root:*:/' etc/shadow
fi
mount -t proc proc proc
mount -t tmpfs -o mode=755 dev dev
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/fd /dev/stdin /dev/stdout /dev/stderr dev/
mkdir dev/pts dev/shm
ln -s pts/ptmx dev/ptmx
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm
mount -t tmpfs -o mode=1777 tmp tmp
mount -t tmpfs -o mode=755 run run
mkdir run/sshd
for path; do
    mkdir -p "./$path"
    mount -o bind,ro "$path" "./$path"
done
hostname "$name"
echo "$pid"
read -r _
ip -batch - <<LINKS
link set lo up
address add $address dev eth0
link set eth0 addrgenmode none up
LINKS
mkdir -p mnt
pivot_root . mnt
cd /
umount -l /mnt
echo up
# sshd is started again when it ends, as a service would be. The shell reaps orphans.
exec sh -c 'while :; do /usr/sbin/sshd -D -e 2>>/var/log/sshd.log; sleep 1; done' init </dev/null >/dev/null 2>&1
