# Functions for scripts that install something with the system's package manager. To be sourced.

fail() {
	echo "$(basename "$0"): $*" >&2
	exit 1
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		fail "neither root nor sudo: run as root: $*"
	fi
}

# install_package APT DNF APK BREW: the names that the package has there.
install_package() {
	if command -v apt-get >/dev/null; then
		as_root apt-get update
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$1"
	elif command -v dnf >/dev/null; then
		as_root dnf install -y "$2"
	elif command -v apk >/dev/null; then
		as_root apk add "$3"
	elif command -v brew >/dev/null; then
		brew install "$4"
	else
		fail "no apt-get, dnf, apk or brew: install $1 yourself."
	fi
}
