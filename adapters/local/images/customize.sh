#!/bin/sh
# Turns a bare Debian root into the base image. $1 is the root; NODE and NPM, when set, are packed npm
# packages that hold a Node binary and npm. Runs as root, or as the root of a user namespace.
set -eu
root=$1

# The user that programs run as. Its home is a copy of the skeleton, nothing else.
chroot "$root" useradd --uid 1000 --user-group --create-home --shell /bin/bash user

# pip installs where it is told: this system is the user's own, nothing else manages it.
rm -f "$root"/usr/lib/python3*/EXTERNALLY-MANAGED

# Node comes as one binary and npm as one folder: Debian's npm is some three hundred packages.
if [ -n "${NODE:-}" ] && [ -n "${NPM:-}" ]; then
	lib=$root/usr/local/lib/node_modules
	mkdir -p "$lib/npm"
	tar -xzf "$NODE" -C "$root/usr/local" --no-same-owner --strip-components=1 package/bin/node
	tar -xzf "$NPM" -C "$lib/npm" --no-same-owner --strip-components=1
	rm -rf "$lib/npm/docs" "$lib/npm/man"
	ln -sf ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
	ln -sf ../lib/node_modules/npm/bin/npx-cli.js "$root/usr/local/bin/npx"
	chmod 755 "$root/usr/local/bin/node" "$lib/npm/bin/npm-cli.js" "$lib/npm/bin/npx-cli.js"
fi

printf 'LANG=C.UTF-8\n' >"$root/etc/default/locale"
printf 'LANG=C.UTF-8\n' >"$root/etc/environment"
ln -sf /usr/share/zoneinfo/Etc/UTC "$root/etc/localtime"
printf 'Etc/UTC\n' >"$root/etc/timezone"

# What each sandbox gets of its own, or what tells of the machine that built the image.
printf 'sandbox\n' >"$root/etc/hostname"
printf '127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost ip6-loopback\n' >"$root/etc/hosts"
rm -rf "$root"/var/tmp/* "$root"/var/log/*
rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/var/cache/debconf/*-old
rm -f "$root"/etc/apt/apt.conf.d/99mmdebstrap "$root"/etc/passwd- "$root"/etc/group- "$root"/etc/shadow- "$root"/etc/gshadow-
mkdir -p "$root/var/lib/apt/lists/partial" "$root/var/cache/apt/archives/partial" "$root/var/log/apt"
