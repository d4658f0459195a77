#!/bin/sh
# dist-check.sh: builds one platform from two clones of HEAD, in folders of different names and without the build cache, and fails
# unless the binaries are the same to the byte.
set -eu
cd "$(dirname "$0")/.."
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
for clone in a another; do
	git clone --quiet . "$root/$clone"
	GOCACHE=$root/cache-$clone GOOS=linux GOARCH=arm64 "$root/$clone/scripts/build.sh" check "$root/relay-$clone"
done
cmp "$root/relay-a" "$root/relay-another"
echo "the same commit gives the same bytes"
