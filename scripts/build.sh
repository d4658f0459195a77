#!/bin/sh
# build.sh VERSION FILE: builds the command, static and without the paths of this machine, for GOOS and GOARCH.
set -eu
cd "$(dirname "$0")/.."
CGO_ENABLED=0 exec go build -trimpath -ldflags "-s -w -X main.version=$1" -o "$2" ./cmd/relay
