#!/bin/sh
# Runs a server for as long as standard input is open, then ends it by its process id and removes its folder. So nothing
# is left when the tests end, however they end; and when this script is killed, the kernel ends the server.
#
# usage: keeper.sh FOLDER SIGNAL USER PROGRAM [ARGUMENT...]    USER is empty for whoever calls
folder=$1 signal=$2 user=$3
shift 3
cd "$folder" || exit 1

if [ -n "$user" ]; then
    group=$(id -g "$user") || exit 1
    setpriv --reuid "$user" --regid "$group" --clear-groups --pdeathsig "$signal" -- "$@" >output.log 2>&1 </dev/null &
else
    setpriv --pdeathsig "$signal" -- "$@" >output.log 2>&1 </dev/null &
fi
server=$!
# The shell would say of each server that it was killed.
exec 2>/dev/null
trap : TERM INT
echo "$server"
read -r _
kill -s "$signal" "$server"
# A signal that comes now must not end the wait.
trap '' TERM INT
wait "$server"
cd / && rm -rf "$folder"
