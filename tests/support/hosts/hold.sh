# The rack: process 1 of a PID, mount and network namespace of its own, which owns the
# switch (a bridge) and the disks (a tmpfs) of the hosts. Arguments: FOLDER
#
# Standard input is a pipe whose other end only the session has. Its end is the end of
# the session, however that came; then the folder goes, and as process 1 of a namespace
# ends, the kernel ends and frees all that is in it.
set -eu
# /proc is still the machine's own, so this is the number that the session sees.
read -r pid _ </proc/self/stat
mkdir "$1/disks"
mount -t tmpfs -o mode=700 fake-hosts "$1/disks"
ip -batch - <<LINKS
link set lo up
link add switch type bridge mcast_snooping 0
link set switch addrgenmode none up
LINKS
echo "$pid"
cat >/dev/null
umount -l "$1/disks"
rm -rf -- "$1"
