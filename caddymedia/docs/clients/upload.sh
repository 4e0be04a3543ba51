#!/bin/sh
# Uploads images, all or none:  sh upload.sh photo.jpg ...
# MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
set -eu
: "${MEDIA_SERVER:?set it to the address of the service}"
: "${MEDIA_API_KEY:?set it to the key of an account}"
: "${MEDIA_PASSWORD:?set it to the password of that account}"

for path do # the files become the options of curl
	[ -r "$path" ] || {
		echo "$path: it is missing, or may not be read" >&2
		exit 1
	}
	shift
	quoted=$(printf %s "$path" | sed 's/[\\"]/\\&/g') # as it must be between quotes
	set -- "$@" --form "files[]=@\"$quoted\""
done

# Secrets go in through standard input: others can read the command line.
answer=$(printf %s "$MEDIA_PASSWORD" |
	curl --silent --show-error --fail-with-body "$MEDIA_SERVER/api/auth/generateToken" \
		--data-urlencode "api_key=$MEDIA_API_KEY" --data-urlencode password@-) || {
	echo "no token: $answer" >&2
	exit 1
}
token=$(printf %s "$answer" | sed 's/.*"token":"\([^"]*\)".*/\1/')

# With the key, a form whose answer was lost may be sent again: its images are stored once.
key=$(od -An -tx8 -N16 /dev/urandom | tr -d ' ')
attempt=1
until answer=$(printf 'Authorization: Bearer %s' "$token" |
	curl --silent --show-error --fail-with-body "$MEDIA_SERVER/api/upload/image" \
		--header @- --header "Idempotency-Key: $key" --form alias=content "$@"); do
	if [ -z "$answer" ] && [ $attempt -lt 4 ]; then # no answer at all
		sleep $attempt
		attempt=$((attempt + 1))
		continue
	fi
	printf '%s\n' "$answer" | tr '{' '\n' |
		sed -n '/^"message"/ { s/"message":"\(.*\)","filename":"\(.*\)"}.*/\2: \1/; s/^: //; s/\\"/"/g; p; }' >&2
	exit 1
done
printf '%s\n' "$answer" | tr '{' '\n' |
	sed -n 's/^"full_path":"\([^"]*\)","filename":"\([^"]*\)".*/\1 \2/p'
