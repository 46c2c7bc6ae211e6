#!/usr/bin/env bash
# Runs both README commands from a clean clone inside a minimal Debian 12, to find the package that
# only this machine has. Needs root and debootstrap. usage: ./dev fresh [FOLDER, default build/fresh]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ $(id -u) == 0 ]] || { echo "./dev fresh: needs root for debootstrap and chroot" >&2; exit 1; }
command -v debootstrap >/dev/null || { apt-get update -qq; apt-get install -y -qq debootstrap >/dev/null; }

target=$(realpath -m "${1:-build/fresh}")
# The mirror and pip settings of this machine, read at run time; none is written into the project.
mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE)' | awk '$2 ~ /bookworm/ {print $1; exit}')
if [[ ! -x $target/bin/bash ]]; then
  echo "debootstrap a minimal Debian 12 into $target" >&2
  debootstrap --variant=minbase --include=ca-certificates bookworm "$target" "${mirror:-http://deb.debian.org/debian}" \
    >build/debootstrap.log 2>&1 || { tail -5 build/debootstrap.log >&2; exit 1; }
fi
cp -r /etc/apt/apt.conf.d/. "$target/etc/apt/apt.conf.d/"
rm -f "$target"/etc/apt/apt.conf.d/*packagekit* "$target"/etc/apt/apt.conf.d/*appstream*
cp -r /etc/ssl/certs/. "$target/etc/ssl/certs/"
cp /etc/resolv.conf /etc/hosts "$target/etc/"
[[ ! -f /etc/pip.conf ]] || cp /etc/pip.conf "$target/etc/pip.conf"

cleanup() { for d in proc sys dev/shm dev; do mountpoint -q "$target/$d" && umount -l "$target/$d"; done; true; }
trap cleanup EXIT
mount -t proc proc "$target/proc"; mount --rbind /dev "$target/dev"; mount -t sysfs sys "$target/sys"

rm -rf "$target/fathom"
git clone -q . "$target/fathom"
pass_env=()
for name in $(compgen -e | grep -iE '^(pip_|.*_proxy$|ssl_cert|requests_ca)' || true); do pass_env+=("$name=${!name}"); done
inside() { chroot "$target" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "${pass_env[@]}" bash -c "cd /fathom && $1"; }

echo "== ./dev demo" >&2
start=$SECONDS
inside 'git config --global --add safe.directory /fathom 2>/dev/null; (./dev demo --port 18123 >/tmp/demo.log 2>&1 & echo $! >/tmp/demo.pid)'
for _ in $(seq 900); do
  if inside 'python3 -c "import urllib.request as u; u.urlopen(\"http://127.0.0.1:18123/health\", timeout=2)"' 2>/dev/null; then ok=1; break; fi
  inside 'kill -0 $(cat /tmp/demo.pid)' 2>/dev/null || break
  sleep 1
done
[[ -n ${ok:-} ]] || { inside 'tail -30 /tmp/demo.log' >&2; echo "./dev demo did not answer" >&2; exit 1; }
echo "the page answers after $((SECONDS - start)) s, packages included" >&2
inside 'kill $(cat /tmp/demo.pid); pkill fathom || true' || true
echo "== ./dev test" >&2
inside './dev test'
