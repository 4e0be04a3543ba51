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

	"github.com/spf13/cobra"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/storagedrivers/cache"
)

func cacheCommand() *cobra.Command {
	var address string
	var empty bool
	cmd := withOutput(&cobra.Command{
		Use:   "cache [<storage>...]",
		Short: "Show and empty the read caches of storages",
		Long: `Show the read caches of the running Caddy, or those of the named storages: how
many bytes they hold, and how many blocks were read from them (hits) and fetched
from the storage (misses) since Caddy started. --empty removes what they hold.

With --json there is one line for each cache.`,
		Args: needs(0, maxArguments, "names of storages"),
	}, func(_ context.Context, o *output, names []string) error { return o.caches(address, names, empty) })
	cmd.Flags().StringVar(&address, "address", "", "Address of the admin API of the running Caddy")
	cmd.Flags().BoolVar(&empty, "empty", false, "Remove what the caches hold")
	return cmd
}

// cacheResult is a line of the JSON.
type cacheResult struct {
	Storage string `json:"storage"`
	cache.Stats
}

// caches shows the caches of storages, after emptying them if wanted.
func (o *output) caches(address string, names []string, empty bool) error {
	address, err := caddycmd.DetermineAdminAPIAddress(address, nil, "", "")
	if err != nil {
		return err
	}
	method := http.MethodGet
	if empty {
		method = http.MethodDelete
	}
	path := mediaapp.CachePath + "?" + url.Values{"storage": names}.Encode()
	resp, err := caddycmd.AdminAPIRequest(address, method, path, nil, nil)
	if err != nil {
		return fmt.Errorf("asking the running Caddy at %s: %w", address, err)
	}
	var caches map[string]cache.Stats
	if err := errors.Join(json.NewDecoder(resp.Body).Decode(&caches), resp.Body.Close()); err != nil {
		return fmt.Errorf("reading the answer of the running Caddy: %w", err)
	}
	if len(caches) == 0 {
		o.sayf("no storage has a cache")
		return nil
	}
	rows := [][]string{{"storage", "size", "of", "entries", "hits", "misses"}}
	for _, name := range slices.Sorted(maps.Keys(caches)) {
		s := caches[name]
		if err := o.document(cacheResult{name, s}); err != nil {
			return err
		}
		row := []string{name, bytesText(s.Bytes), bytesText(s.MaxSize)}
		for _, n := range []int64{int64(s.Entries), s.Hits, s.Misses} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		if !s.Owned {
			row = append(row, "not in use: another process has the folder, or it cannot be written")
		}
		rows = append(rows, row)
	}
	return o.table(rows)
}
