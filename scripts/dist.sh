#!/bin/sh
# dist.sh VERSION: builds dist/relay_VERSION_OS_ARCH for each platform, and dist/SHA256SUMS. The same commit and Go give the
# same bytes.
set -eu
cd "$(dirname "$0")/.."
rm -rf dist
mkdir dist
for os in linux darwin windows; do
	for arch in amd64 arm64; do
		file=dist/relay_$1_${os}_$arch
		[ $os != windows ] || file=$file.exe
		GOOS=$os GOARCH=$arch scripts/build.sh "$1" "$file"
	done
done
cd dist
if command -v sha256sum >/dev/null; then
	sha256sum relay_* >SHA256SUMS
else # macOS
	shasum -a 256 relay_* >SHA256SUMS
fi
cat SHA256SUMS
