#!/bin/sh
# Uploads a picture:  sh upload.sh photo.jpg
# MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
set -eu
: "${MEDIA_SERVER:?set it to the address of the service}"
: "${MEDIA_API_KEY:?set it to the key of an account}"
: "${MEDIA_PASSWORD:?set it to the password of that account}"

# Secrets go in through standard input: others can read the command line.
answer=$(printf %s "$MEDIA_PASSWORD" |
	curl --silent --show-error --fail-with-body "$MEDIA_SERVER/api/auth/generateToken" \
		--data-urlencode "api_key=$MEDIA_API_KEY" --data-urlencode password@-) || {
	echo "no token: $answer" >&2
	exit 1
}
token=$(printf %s "$answer" | sed 's/.*"token":"\([^"]*\)".*/\1/')

path=$(printf %s "$1" | sed 's/[\\"]/\\&/g') # as it must be between quotes
answer=$(printf 'Authorization: Bearer %s' "$token" |
	curl --silent --show-error --fail-with-body "$MEDIA_SERVER/api/upload/image" \
		--header @- --form "files[]=@\"$path\"" --form alias=content) || {
	echo "not stored: $answer" >&2
	exit 1
}
echo "$answer"
