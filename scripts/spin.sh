#!/bin/sh
# Makes sure that the model checker Spin is there.
set -eu
. "$(dirname "$0")/packages.sh"

command -v spin >/dev/null || install_package spin spin spin spin
