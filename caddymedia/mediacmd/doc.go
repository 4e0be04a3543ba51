// Package mediacmd is the `caddy media` commands: what an administrator does with storages
// and items from a shell.
//
// A command works with the storages and aliases of a configuration, a file's or the one of
// a running Caddy, but in its own process: it starts no site and opens no token store.
package mediacmd
