#!/usr/bin/env bash
# Runs COMMAND in a Debian root: the first process of new mount and process namespaces (`unshare` of index.js), so that
# all mounts and processes end with it.
#
#   cell.sh ROOT USER COMMAND...
#
#   CELL_LOWER, CELL_UPPER   ROOT shows the folder CELL_LOWER, and changes go to CELL_UPPER
#   CELL_BINDS               lines `PATH<tab>PATH IN ROOT`: mounted there, read only
#   CELL_WRITABLE_BINDS      the same, writable
set -euo pipefail
root=$1 user=$2
shift 2

mount --make-rprivate /
ip link set lo up
mkdir -p "$root"
if [ -n "${CELL_LOWER:-}" ]; then
  mkdir -p "$CELL_UPPER/upper" "$CELL_UPPER/work"
  # Not every file system can be the upper one: there, the root is a copy.
  if ! mount -t overlay overlay -o "lowerdir=$CELL_LOWER,upperdir=$CELL_UPPER/upper,workdir=$CELL_UPPER/work" "$root" 2>/dev/null; then
    [ -e "$root/etc" ] || cp -a --reflink=auto "$CELL_LOWER/." "$root"
    mount --bind "$root" "$root"
  fi
else
  mount --bind "$root" "$root"
fi
cd "$root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 dev dev
for device in null zero full random urandom tty; do
  touch "dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr

# bind LINES [MOUNT OPTION]
bind() {
  local from to
  while IFS=$'\t' read -r from to; do
    [ -n "$from" ] || continue
    if [ -d "$from" ]; then mkdir -p ".$to"; else mkdir -p ".$(dirname "$to")" && touch ".$to"; fi
    mount --bind "$from" ".$to"
    if [ -n "${2:-}" ]; then mount -o "remount,bind,$2" ".$to"; fi
  done <<<"$1"
}
bind "${CELL_BINDS:-}" ro
bind "${CELL_WRITABLE_BINDS:-}"
unset CELL_LOWER CELL_UPPER CELL_BINDS CELL_WRITABLE_BINDS

# Not `exec`: this shell, process 1, also waits for processes whose parents have ended.
chroot --userspec="$user" . "$@" </dev/null
