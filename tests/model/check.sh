#!/bin/sh
# Checks the model of the watch lock with Spin, and that each of its mutants is found wrong.
set -eu
model=$(cd "$(dirname "$0")" && pwd)/watch.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

errors() { # defines of the model
	spin "$@" -a "$model" >spin.log || { cat spin.log >&2; exit 1; }
	cc -O2 -DSAFETY -o pan pan.c
	./pan -m1000000 >pan.log
	if grep -q "max search depth too small" pan.log; then
		echo "the search was cut off: $*" >&2
		exit 1
	fi
	sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log
}

for defines in "-DRELAYS=1 -DWRITERS=3" "-DRELAYS=2 -DWRITERS=3"; do
	# shellcheck disable=SC2086
	[ "$(errors $defines)" = 0 ] || { echo "the watch lock loses a wake-up ($defines)" >&2; exit 1; }
	echo "model $defines: no wake-up is lost"
done
for mutant in NO_CROSSING W_KEPT W_FIRST FORGET_CROSSING; do
	[ "$(errors -D$mutant)" != 0 ] || { echo "the model does not notice $mutant" >&2; exit 1; }
	echo "mutant $mutant: found"
done
