#!/bin/sh
# Prints the query of a signed address:
#
# sh sign.sh <kind> <alias> filename|folder <name> <expires> [<rendition> [<download> [<generation>]]]
#
# MEDIA_SIGNING_KEY is in the environment. The key is on no command line, where other users of the
# machine could read it: printf is a command of the shell itself.
set -eu
: "${MEDIA_SIGNING_KEY:?set MEDIA_SIGNING_KEY in the environment}"
if [ $# -lt 5 ] || [ $# -gt 8 ]; then
	sed -n 4p "$0" >&2
	exit 1
fi

# hex prints standard input in hexadecimal digits.
hex() { od -An -v -tx1 | tr -d ' \n'; }

# field prints a field of the text.
field() { printf '%d:%s' "$(printf %s "$1" | wc -c)" "$1"; }

# pad prints the key, of 64 bytes in hexadecimal digits, with each byte changed by $1.
pad() {
	rest=$key
	while [ -n "$rest" ]; do
		next=${rest#??}
		printf "\\$(printf %03o $((0x${rest%"$next"} ^ $1)))"
		rest=$next
	done
}

sha256() { openssl dgst -sha256 -binary; }

key=$(printf %s "$MEDIA_SIGNING_KEY" | hex)
if [ ${#key} -gt 128 ]; then
	key=$(printf %s "$MEDIA_SIGNING_KEY" | sha256 | hex)
fi
while [ ${#key} -lt 128 ]; do
	key=${key}00
done

# An HMAC is SHA-256 of the key and SHA-256 of the key and the text, RFC 2104.
signature=$({
	pad 0x5c
	{
		pad 0x36
		for value in media1 "$1" "$2" "$3" "$4" "${6-}" "$5" "${7-}" "${8-0}"; do
			field "$value"
		done
	} | sha256
} | sha256 | openssl base64 -A | tr '+/' '-_' | tr -d '=')

# encoded prints a value with each byte percent-encoded.
encoded() { printf %s "$1" | hex | sed 's/../%&/g'; }

query="expires=$5&signature=$signature"
if [ "$3" = folder ]; then
	query="$query&scope=$(encoded "$4")"
fi
if [ -n "${7-}" ]; then
	query="$query&download=$(encoded "$7")"
fi
printf '%s\n' "$query"
