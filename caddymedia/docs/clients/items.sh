#!/bin/sh
# Manages images of the alias content. Without arguments it prints its usage.
# MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
set -eu
case ${1-} in
list) least=1 ;;
delete | import) least=2 ;;
move | copy | replace) least=3 ;;
*) least=$(($# + 1)) ;;
esac
[ $# -ge $least ] || {
	cat >&2 <<-'END'
		usage: sh items.sh list [folder]
		       sh items.sh delete filename ...
		       sh items.sh move|copy filename new-filename
		       sh items.sh replace filename photo.jpg
		       sh items.sh import address ...
	END
	exit 1
}
: "${MEDIA_SERVER:?set it to the address of the service}"
: "${MEDIA_API_KEY:?set it to the key of an account}"
: "${MEDIA_PASSWORD:?set it to the password of that account}"
items=$MEDIA_SERVER/api/items/image/content

# Secrets go in through standard input: others can read the command line.
answer=$(printf %s "$MEDIA_PASSWORD" |
	curl --silent --show-error --fail-with-body "$MEDIA_SERVER/api/auth/generateToken" \
		--data-urlencode "api_key=$MEDIA_API_KEY" --data-urlencode password@-) || {
	echo "no token: $answer" >&2
	exit 1
}
token=$(printf %s "$answer" | sed 's/.*"token":"\([^"]*\)".*/\1/')

# call sends a request with the token: the arguments are those of curl.
call() {
	answer=$(printf 'Authorization: Bearer %s' "$token" |
		curl --silent --show-error --fail-with-body --header @- "$@") || {
		printf '%s\n' "$answer" >&2
		exit 1
	}
}

# address sets the variable to the address of an item. curl removes dot segments, which would lead to another one.
address() {
	case /$1/ in
	*//* | */./* | */../*)
		echo "the name \"$1\" has a part that is empty, . or .." >&2
		exit 1
		;;
	esac
	address=$items/$(printf %s "$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g; s|%2f|/|g')
}

# show prints full_path and filename of the items in the answer.
show() {
	printf '%s\n' "$answer" | tr '{' '\n' |
		sed -n 's/^"full_path":"\([^"]*\)","filename":"\([^"]*\)".*/\1 \2/p'
}

command=$1
shift
case $command in
list)
	folder=${1-} cursor=
	while
		call --get "$items" --data-urlencode "folder=$folder" --data-urlencode "cursor=$cursor"
		show
		cursor=$(printf %s "$answer" | sed -n 's/.*"next":"\([^"]*\)".*/\1/p')
		[ "$cursor" ]
	do :; done
	;;
delete)
	if [ $# = 1 ]; then
		address "$1"
		call --request DELETE "$address"
		exit
	fi
	for filename do # the filenames become the options of curl
		shift
		set -- "$@" --data-urlencode "filename=$filename"
	done
	call "$items" --data action=delete "$@"
	kept=$(printf %s "$answer" | tr '{' '\n' |
		sed -n 's/^"filename":"\(.*\)","deleted":false,"message":"\(.*\)"}.*/\1: \2/p')
	[ -z "$kept" ] || {
		printf '%s\n' "$kept" >&2
		exit 1
	}
	;;
move)
	address "$1"
	call "$address" --data-urlencode "to=$2"
	show
	;;
copy)
	address "$1"
	call "$address" --data-urlencode "copy_to=$2"
	show
	;;
replace)
	address "$1"
	call "$address"
	etag=$(printf %s "$answer" | sed 's/.*"etag":"\\\("[^"\\]*\)\\"".*/\1"/')
	call "$address" --upload-file "$2" --header "If-Match: $etag" # which fails if others have replaced it
	show
	;;
import)
	for address do
		shift
		set -- "$@" --form-string "url=$address"
	done
	call "$MEDIA_SERVER/api/upload/image" --form-string alias=content "$@"
	show
	;;
esac
