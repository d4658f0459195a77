#!/bin/sh
# Makes sure that the tests and the demo find a Postgres. Does nothing when DATABASE_URL is set or the server's programs
# are installed; otherwise installs them with the system's package manager. No server is started.
set -eu
cd "$(dirname "$0")/.."

fail() {
	echo "postgres.sh: $*" >&2
	exit 1
}

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

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		fail "neither root nor sudo: install PostgreSQL's server yourself, or set DATABASE_URL."
	fi
}

install_with_apt() {
	# Without this the package makes a cluster of its own and starts it.
	as_root mkdir -p /etc/postgresql-common/createcluster.d
	echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.d/no-main-cluster.conf >/dev/null
	as_root apt-get update
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql
}

install() {
	if command -v apt-get >/dev/null; then
		install_with_apt
	elif command -v dnf >/dev/null; then
		as_root dnf install -y postgresql-server
	elif command -v apk >/dev/null; then
		as_root apk add postgresql
	elif command -v brew >/dev/null; then
		brew install postgresql@17
	else
		fail "no apt-get, dnf, apk or brew: install PostgreSQL's server yourself, or set DATABASE_URL."
	fi
}

if [ -n "${DATABASE_URL:-}" ] || installed; then
	exit
fi
install
installed || fail "the package is installed, but initdb and postgres are in none of the usual places: set OUTBOX_PG_BIN to their folder."
