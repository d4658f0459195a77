#!/bin/sh
# Makes sure that the tests and the demo find a Postgres. Does nothing when DATABASE_URL is set or the server's programs
# are installed; otherwise installs them with the system's package manager. No server is started.
set -eu
cd "$(dirname "$0")/.."

. scripts/packages.sh

holds_server() {
	[ -x "$1/initdb" ] && [ -x "$1/postgres" ]
}

# The search of internal/localpg/find.go.
installed() {
	if [ -n "${OUTBOX_PG_BIN:-}" ]; then
		holds_server "$OUTBOX_PG_BIN" || fail "OUTBOX_PG_BIN is $OUTBOX_PG_BIN, which does not hold initdb and postgres."
		return
	fi
	for dir in $(echo "$PATH" | tr : '\n') $(grep -v '^#' internal/localpg/places.txt); do
		if holds_server "$dir"; then
			return
		fi
	done
	return 1
}

if [ -n "${DATABASE_URL:-}" ] || installed; then
	exit
fi
if command -v apt-get >/dev/null; then
	# Without this the package makes a cluster of its own and starts it.
	as_root mkdir -p /etc/postgresql-common/createcluster.d
	echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.d/no-main-cluster.conf >/dev/null
fi
install_package postgresql postgresql-server postgresql postgresql@17
installed || fail "the package is installed, but initdb and postgres are in none of the usual places: set OUTBOX_PG_BIN to their folder."
