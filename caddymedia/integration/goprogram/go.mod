module example.com/people

go 1.26.0

require (
	github.com/caddymedia/media v0.0.0
	github.com/caddyserver/caddy/v2 v2.11.8
)

replace github.com/caddymedia/media => ../../.. // a checkout of it
