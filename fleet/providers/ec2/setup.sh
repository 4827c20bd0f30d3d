# Turns an Ubuntu machine into a drone. cloud-init runs it as root, once, at the end of the first boot; its output is in
# /var/log/cloud-init-output.log. HALLEY_ROOT is a prefix of all paths, for tests.
# The variables of a launch (see user-data.js) are inserted above.
set -u
root=${HALLEY_ROOT:-}
home=$root/opt/halley
metadata=${HALLEY_METADATA:-http://169.254.169.254}
pause=${HALLEY_PAUSE:-5}

log() { echo "halley: $*"; }

# Powers off after $1 minutes, at the latest at the promised end. This terminates the instance.
off_in() {
  left=$(((ENDS - $(date +%s)) / 60))
  [ "$left" -lt "$1" ] || left=$1
  [ "$left" -gt 0 ] || left=0
  shutdown -P "+$left"
}

# Before anything can fail.
off_in 1000000

# A machine without a drone powers off after ten minutes, to allow debugging.
give_up() {
  log "$*, powers off in 10 minutes"
  off_in 10
  exit 1
}

retry() {
  what=$1
  shift
  for attempt in 1 2 3 4 5 6 7 8; do
    "$@" && return
    log "$what: attempt $attempt failed"
    sleep $((attempt * pause))
  done
  give_up "$what failed"
}

fetch() { curl -fsSL --connect-timeout 10 --max-time 300 "$@"; }

# The machines of one request have the same user data. Each is the next drone.
read_index() {
  token=$(fetch -m 5 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' "$metadata/latest/api/token") &&
    index=$(fetch -m 5 -H "X-aws-ec2-metadata-token: $token" "$metadata/latest/meta-data/ami-launch-index") || return
  case $index in '' | *[!0-9]*) return 1 ;; esac
}
retry 'asking which machine this is' read_index
config=$root/etc/halley/drone.json
(umask 077 && sed "s/@ID@/$ID_PREFIX$((ID_FIRST + index))/" "$config.in" >"$config") || give_up 'writing the configuration failed'

enough() { [ "$("$1" -p 'parseInt(process.versions.node) >= 20' 2>/dev/null)" = true ]; }

# From a gzip archive: every machine can unpack it.
install_node() {
  case $(uname -m) in
    aarch64) arch=arm64 ;;
    *) arch=x64 ;;
  esac
  fetch -o sums "$NODE_FROM/SHASUMS256.txt" || return
  line=$(grep -E "^[0-9a-f]{64}  node-v[0-9.]+-linux-$arch.tar.gz\$" sums) || return
  file=${line#*  }
  fetch -o "$file" "$NODE_FROM/$file" || return
  echo "$line" | sha256sum -c --quiet - || return
  tar -xf "$file" --strip-components=1 "${file%.tar.gz}/bin/node" || return
  rm "$file"
  enough bin/node
}
mkdir -p "$home/bin"
cd "$home"
if node=$(command -v node) && enough "$node"; then
  ln -sf "$node" bin/node
else
  retry 'installing Node.js' install_node
fi

# Skips keys that this kernel lacks.
sysctl -q -e -p "$root/etc/sysctl.d/90-halley.conf"
# Services that use CPU during a measurement.
systemctl stop apt-daily.timer apt-daily-upgrade.timer unattended-upgrades.service 2>/dev/null
systemctl daemon-reload && systemctl enable --now halley-drone.service || give_up 'starting the drone failed'
