package cache

import (
	"crypto/rand"
	"log/slog"
	"sync"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/ftp"
	"github.com/caddymedia/media/storagedrivers/sftp"
)

// TestConformanceFTP: a backend without ETags and with few connections, which cannot say which
// generation it sends.
func TestConformanceFTP(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	server := servers.ProFTPD(t, servers.FTPSettings{})
	var roots sync.Map // by test
	on := func(t *testing.T) storagedrivers.Driver {
		root, _ := roots.LoadOrStore(t, rand.Text())
		c := &ftp.Config{
			Address: server.Address, User: server.User, Password: server.Password, TLS: "none", Connections: 4, Root: root.(string),
		}
		is(t, c.Complete(), nil)
		d, err := c.NewDriver(slog.New(slog.DiscardHandler))
		is(t, err, nil)
		return New(d, open(t, t.TempDir(), 0), "backend", Policy{})
	}
	drivertest.Run(t, drivertest.Harness{New: on, Another: on, OtherSetting: true, OtherServer: true})
}

// TestImmutableSFTP: objects that are never replaced are read through blocks, by readers that
// share few connections.
func TestImmutableSFTP(t *testing.T) {
	t.Parallel()
	s := servers.OpenSSH(t)
	c := &sftp.Config{
		Address: s.Address, User: s.User, PrivateKey: s.KeyFile, HostKeys: []string{s.HostKey}, Root: s.Root, Connections: 1,
	}
	is(t, c.Complete(), nil)
	inner, err := c.NewDriver(slog.New(slog.DiscardHandler))
	is(t, err, nil)
	store := open(t, t.TempDir(), 0)
	d := New(inner, store, "backend", Policy{Immutable: true, Block: 256 * kib})
	content := random(1, 5*mib)
	put(t, d, "object", content)
	readers(t, 20, func(i int) {
		offset := int64(i) * 200 * kib
		has(t, d, "object", storagedrivers.Range{Offset: offset}, content[offset:])
	})
	misses := store.Stats().Misses
	has(t, d, "object", all, content)
	if stats := store.Stats(); stats.Misses != misses || stats.Hits == 0 {
		t.Errorf("%+v after %d misses", stats, misses)
	}
	is(t, d.Close(), nil)
}
