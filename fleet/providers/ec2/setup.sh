#!/bin/sh
# Makes an Ubuntu machine into a drone. cloud-init runs it as root, once, at the end of the first boot; what it says is in
# /var/log/cloud-init-output.log. HALLEY_ROOT stands before all paths, so that it can be run in any folder.
set -u
root=${HALLEY_ROOT:-}
home=$root/opt/halley
metadata=${HALLEY_METADATA:-http://169.254.169.254}
pause=${HALLEY_PAUSE:-2}
. "$home/launch.env"

log() { echo "halley: $*"; }

# Powering off terminates the instance. At most so many minutes, and never later than what was promised.
off_in() {
  left=$(((ENDS - $(date +%s)) / 60))
  [ "$left" -lt "$1" ] || left=$1
  [ "$left" -gt 0 ] || left=0
  shutdown -P "+$left" || log "cannot set the time to power off; the loop of bootcmd stays"
}

# Before anything that may fail.
off_in 1000000
systemd-run -q --unit=halley-end --on-calendar="$(date -u -d "@$ENDS" '+%F %T UTC')" systemctl poweroff || log 'no timer for the end'

# A machine without a drone is of no use: it may be looked at for ten minutes.
give_up() {
  log "$*; this machine powers off in ten minutes"
  off_in 10
  exit 1
}

retry() {
  what=$1
  shift
  wait=$pause
  for attempt in 1 2 3 4 5 6 7 8; do
    "$@" && return
    log "$what: attempt $attempt failed"
    [ "$attempt" = 8 ] || sleep "$wait"
    [ "$wait" -ge 60 ] || wait=$((wait * 2))
  done
  give_up "$what failed"
}

fetch() { curl -fsSL --connect-timeout 10 --max-time 300 "$@"; }

# The machines of one request have the same user data. Each is the next drone after the one before it.
read_index() {
  token=$(fetch -m 5 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' "$metadata/latest/api/token") &&
    index=$(fetch -m 5 -H "X-aws-ec2-metadata-token: $token" "$metadata/latest/meta-data/ami-launch-index") || return
  case $index in '' | *[!0-9]*) return 1 ;; esac
}
retry 'asking which machine this is' read_index
(umask 077 && sed "s/@ID@/$ID_PREFIX$((ID_FIRST + index))/" "$root/etc/halley/drone.json.in" >"$root/etc/halley/drone.json") ||
  give_up 'writing the configuration failed'

enough() { [ "$("$1" -p 'process.versions.node.split(".")[0] >= 20' 2>/dev/null)" = true ]; }

install_node() {
  case $(uname -m) in
    x86_64) arch=x64 ;;
    aarch64) arch=arm64 ;;
    *) give_up "there is no Node.js for $(uname -m)" ;;
  esac
  kind=tar.gz
  ! command -v xz >/dev/null || kind=tar.xz
  case $NODE_VERSION in
    *.*) from=$NODE_URL/v$NODE_VERSION ;;
    *) from=$NODE_URL/latest-v$NODE_VERSION.x ;;
  esac
  fetch -o "$work/sums" "$from/SHASUMS256.txt" || return
  line=$(grep -E "^[0-9a-f]{64}  node-v[0-9.]+-linux-$arch\.$kind\$" "$work/sums") || return
  file=${line#*  }
  fetch -o "$work/$file" "$from/$file" || return
  echo "$line" | (cd "$work" && sha256sum -c --quiet -) || return
  tar -xf "$work/$file" -C "$home/bin" --strip-components=2 "${file%."$kind"}/bin/node" || return
  enough "$home/bin/node"
}
mkdir -p "$home/bin"
if node=$(command -v node) && enough "$node"; then
  ln -sf "$node" "$home/bin/node"
else
  work=$(mktemp -d)
  retry 'installing Node.js' install_node
  rm -rf "$work"
fi

# The drone came packed.
"$home/bin/node" "$home/unpack.cjs" "$home/drone.packed" "$home/drone.mjs" || give_up 'unpacking the drone failed'

# Keys that this kernel does not have are left out.
sysctl -q -e -p "$root/etc/sysctl.d/90-halley.conf" || log 'some kernel settings could not be made'
# What would take the processor away in the middle of a measurement.
systemctl stop apt-daily.timer apt-daily-upgrade.timer unattended-upgrades.service 2>/dev/null
systemctl daemon-reload && systemctl enable --now halley-drone.service || give_up 'starting the drone failed'
log 'the drone is started'
