#!/bin/bash
# bare-debian.sh [--as-root] COMMAND…: runs each COMMAND, one string each, as an ordinary user in a clone of this
# checkout, on a bare Debian 12 with what README.md asks for and nothing else. Commands after --as-root run as its root.
# Making it takes root and debootstrap.
#
#   tools/bare-debian.sh './terse train' './terse test'
#
# What is fetched (Debian itself, packages of npm, pnpm and pip) is kept in $TERSE_BARE_CACHE for the next time; KEEP=1
# keeps the machine.
set -euo pipefail
failed=()
cd "$(dirname "$0")/.."

packages="ca-certificates git nodejs npm python3 python3-pip g++ cmake make"
packages+=" iproute2" # for the network namespaces of tests that run as root
cache=${TERSE_BARE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/terse-bare-debian}
base=$cache/bookworm-$(sha256sum <<<"$packages" | cut -c1-8).tar
quiet() { "$@" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; return 1; }; }

[ "$(id -u)" = 0 ] || { echo "bare-debian.sh: only root can make a machine" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "bare-debian.sh: apt-get install debootstrap" >&2; exit 2; }
mkdir -p "$cache"
work=$(mktemp -d "${TMPDIR:-/var/tmp}/terse-bare.XXXXXX")
machine=$work/machine
mkdir -m 755 "$machine"
running=
end() {
  [ -z "$running" ] || kill -KILL "$running" 2>/dev/null || true # and with it all that runs on the machine
  if [ "${KEEP:-}" ]; then echo "kept: $machine" >&2; else rm -rf --one-file-system "$work"; fi
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# What a person's machine has of its own: the way to the network, and the settings of package clients.
settle() {
  cp -L /etc/resolv.conf /etc/hosts "$machine/etc/"
  for file in /etc/ssl/certs/ca-certificates.crt /etc/pip.conf /etc/npmrc; do
    [ ! -f "$file" ] || install -D -m 644 "$file" "$machine$file"
  done
  [ ! -d /usr/local/share/ca-certificates ] || cp -r /usr/local/share/ca-certificates "$machine/usr/local/share/"
  [ ! -f "$HOME/.npmrc" ] || grep -v '^nodedir' "$HOME/.npmrc" | install -m 644 /dev/stdin "$machine/home/visitor/.npmrc"
  local pip=$HOME/.config/pip/pip.conf
  [ ! -f "$pip" ] || install -D -m 644 "$pip" "$machine/etc/pip.conf"
  if [ -f /etc/apt/sources.list.d/debian.sources ]; then
    cp /etc/apt/sources.list.d/debian.sources "$machine/etc/apt/sources.list.d/"
    : >"$machine/etc/apt/sources.list"
  fi
}
network='[A-Za-z_]*(_CERTS?|_CERT_DIR|_CA_BUNDLE|_CAINFO|_proxy|_PROXY)|SSL_CERT_FILE|npm_config_[a-z_]+|PIP_INDEX_URL|PIP_DEFAULT_TIMEOUT'

# inside USER FOLDER COMMAND: in namespaces of its own, so that every process and every mount ends with it.
inside() {
  local user=$1 folder=$2 command=$3 home=/root
  [ "$user" = root ] || home=/home/$user
  local environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "HOME=$home" "USER=$user" TERM=dumb LANG=C.UTF-8)
  # Root finds what the ordinary user has installed.
  [ "$user" != root ] || environment+=(TERSE_TOOLCHAIN=/home/visitor/.cache/terse DEBIAN_FRONTEND=noninteractive)
  [ -z "${CI:-}" ] || environment+=("CI=$CI")
  mapfile -t -O "${#environment[@]}" environment < <(env | grep -E "^($network)=")
  local enter='set -e
    mount --bind "$0" "$0" # a root that is a mount, as on a machine of its own: `ip netns` changes how it propagates
    mount --rbind /dev "$0/dev"; mount --rbind /sys "$0/sys"; mount -t proc proc "$0/proc"; mount -t tmpfs tmpfs "$0/run"
    mount --bind "$1/npm" "$0/home/visitor/.npm"; mount --bind "$1/pip" "$0/home/visitor/.cache/pip"
    shift; chroot "$0" "$@"; exit $? # this shell stays, and waits for processes whose parent has ended, as an init does'
  unshare --mount --pid --fork --kill-child sh -c "$enter" "$machine" "$cache" \
    setpriv --reuid="$user" --regid="$user" --init-groups env -i "${environment[@]}" bash -c "cd $folder && $command" </dev/null &
  running=$!
  wait "$running"
}

if [ -s "$base" ]; then
  tar -C "$machine" -xf "$base"
else
  echo "… a bare Debian 12" >&2
  quiet debootstrap --variant=minbase --include=ca-certificates bookworm "$machine"
  chroot "$machine" useradd --create-home --shell /bin/bash visitor
  mkdir -p "$machine/home/visitor/.npm" "$machine/home/visitor/.cache/pip" "$cache/npm" "$cache/pip"
  settle
  quiet inside root / "apt-get update && apt-get install -y --no-install-recommends $packages && apt-get clean"
  tar -C "$machine" -cf "$base.$$" . && mv "$base.$$" "$base"
fi
settle
mkdir -p "$cache/npm" "$cache/pip"
chown -R --reference="$machine/home/visitor" "$cache/npm" "$cache/pip"

# A clone, with what is not committed yet.
project=$machine/home/visitor/terse
git clone -q . "$project"
git ls-files -z --deleted | (cd "$project" && xargs -0 -r rm -f)
git ls-files -z --modified --others --exclude-standard | while IFS= read -r -d '' file; do
  [ ! -e "$file" ] || printf '%s\0' "$file"
done | tar -c --null --files-from=- | tar -x -C "$project"
chown -R --reference="$machine/home/visitor" "$machine/home/visitor"
chroot "$machine" git config --system --add safe.directory /home/visitor/terse

status=0
user=visitor
for command; do
  if [ "$command" = --as-root ]; then user=root; continue; fi
  echo "[after $SECONDS s] $user: $command" >&2
  inside "$user" /home/visitor/terse "$command" || { status=$?; failed+=("$command: exit code $status"); }
done
for each in "${failed[@]}"; do echo "failed: $each" >&2; done
exit "$status"
