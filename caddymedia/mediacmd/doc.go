// Package mediacmd implements the `caddy media` commands, with which an administrator manages
// storages and items from a shell.
//
// A command uses the storages and aliases of a configuration, from a file or from a running Caddy,
// but in its own process. It starts no site and opens no token store.
package mediacmd
