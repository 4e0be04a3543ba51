package mediacmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
)

func cacheCommand() *cobra.Command {
	var address string
	var empty bool
	cmd := withOutput(&cobra.Command{
		Use:   "cache [<storage>...]",
		Short: "Show and empty the read caches of storages",
		Long: `Show the read caches of the running Caddy, or those of the named storages: how
many bytes they have, and how many blocks were read from them (hits) and fetched
from the storage (misses) since Caddy opened their folders. --empty removes all
bytes.

With --json there is one line for each cache.`,
		Args: needs(0, maxArguments, "names of storages"),
	}, func(_ context.Context, o *output, names []string) error { return o.caches(address, names, empty) })
	cmd.Flags().StringVar(&address, "address", "", "Address of the admin API of the running Caddy")
	cmd.Flags().BoolVar(&empty, "empty", false, "Remove all bytes of the caches")
	return cmd
}

// cacheResult is a line of the JSON: a cache as the API describes it.
type cacheResult struct {
	Storage string `json:"storage"`
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"`
	MaxSize int64  `json:"max_size"`
	Hits    int64  `json:"hits"`
	Misses  int64  `json:"misses"`
	Evicted int64  `json:"evicted"`
	Damaged int64  `json:"damaged"`
	InUse   bool   `json:"in_use"`
}

// caches shows the caches of storages, after emptying them if wanted.
func (o *output) caches(address string, names []string, empty bool) error {
	var caches map[string]cacheResult
	if err := askRunning(address, http.MethodGet, cachesPath, &caches); err != nil {
		return err
	}
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(caches))
	}
	if len(names) == 0 {
		o.sayf("no storage has a cache")
		return nil
	}
	rows := [][]string{{"storage", "size", "of", "entries", "hits", "misses"}}
	for _, name := range names {
		c, ok := caches[name]
		if !ok {
			return fmt.Errorf("no storage %q of the running Caddy has a cache", name)
		}
		if empty {
			path := url.URL{Path: cachesPath + "/" + name}
			c = cacheResult{}
			if err := askRunning(address, http.MethodDelete, path.EscapedPath(), &c); err != nil {
				return fmt.Errorf("emptying the cache of %s: %w", name, err)
			}
		}
		c.Storage = name
		if err := o.document(c); err != nil {
			return err
		}
		row := []string{name, bytesText(c.Bytes), bytesText(c.MaxSize)}
		for _, n := range []int64{c.Entries, c.Hits, c.Misses} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		if !c.InUse {
			row = append(row, "not in use, the log says why")
		}
		rows = append(rows, row)
	}
	return o.table(rows)
}

// cachesPath is the path of the caches in the admin API.
const cachesPath = "/media/caches"

// askRunning sends a request to the admin API of the running Caddy, and decodes its answer into a
// value. address is that of the command line, "" for Caddy's default.
func askRunning(address, method, path string, into any) error {
	address, err := caddycmd.DetermineAdminAPIAddress(address, nil, "", "")
	if err != nil {
		return err
	}
	answer, err := caddycmd.AdminAPIRequest(address, method, path,
		http.Header{"Connection": {"close"}}, nil) // otherwise each request leaves a connection open
	if err == nil {
		return errors.Join(json.NewDecoder(answer.Body).Decode(into), answer.Body.Close())
	}
	// The error ends with the answer, whose message is for users.
	var refusal struct{ Error string }
	if _, document, ok := strings.Cut(err.Error(), "{"); ok && json.Unmarshal([]byte("{"+document), &refusal) == nil && refusal.Error != "" {
		err = errors.New(refusal.Error)
	}
	return fmt.Errorf("asking the running Caddy: %w", err)
}
