# Ends when the process that started it lets go of its standard input, and then removes the folders "$@", the cluster's
# first. A line beforehand says that the server is down; without one that process died, and the server is stopped here.
if ! read -r _ && read -r pid <"$1/data/postmaster.pid"; then
	kill -QUIT "${pid#-}" # initdb's server writes its pid as a negative number
	tries=0
	while [ -e "$1/data/postmaster.pid" ] && [ $tries -lt 10 ]; do
		sleep 1
		tries=$((tries + 1))
	done
fi
# Twice: an initdb whose parent died may still be writing.
rm -rf "$@" || { sleep 1 && rm -rf "$@"; }
