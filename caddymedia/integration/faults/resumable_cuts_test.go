package faults_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// seed returns that of MEDIA_TEST_SEED, or a random one.
func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("MEDIA_TEST_SEED")
	if text == "" {
		return rand.Uint64()
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestCuts cuts every upload several times, in every way. Each is stored once with all its bytes,
// no acknowledged byte is lost, and nothing else is left.
func TestCuts(t *testing.T) {
	t.Parallel()
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		r := &trial{
			t: t, nodes: []*site.Child{site.NewChild(t)}, storage: "driver local $ROOT/keep", seed: seed(t),
			uploads: site.Number(t, "MEDIA_TEST_UPLOADS", 14), atOnce: 12, minSize: mib, maxSize: 48 * mib,
		}
		r.run()
	})
	site.EachRemote(t, func(t *testing.T, p site.Backend) {
		r := &trial{
			t: t, nodes: []*site.Child{site.NewChild(t)}, storage: p.Driver(p.Address, "keep", ""), seed: seed(t),
			uploads: site.Number(t, "MEDIA_TEST_UPLOADS", 6), atOnce: 4, minSize: mib / 4, maxSize: 20 * mib,
			// A process that is killed leaves the lock of a name, which others break after 10 minutes.
			noKills: p.Apart,
		}
		if p.Folder == "media-test" { // S3
			r.redis, r.uploads, r.maxSize = site.NewRedis(t), site.Number(t, "MEDIA_TEST_UPLOADS", 8), 48*mib
		}
		r.run()
	})
}

// TestCutsTwoNodes is TestCuts with two Caddys that share the storage and the tokens. Every
// connection goes to the other one.
func TestCutsTwoNodes(t *testing.T) {
	t.Parallel()
	for name, storage := range map[string]func(t *testing.T) string{
		"local": func(t *testing.T) string {
			t.Helper()
			return "driver local " + t.TempDir()
		},
		"s3": func(t *testing.T) string {
			t.Helper()
			p := site.StartS3(t)
			return p.Driver(p.Address, "keep", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &trial{
				t: t, nodes: []*site.Child{site.NewChild(t), site.NewChild(t)}, storage: storage(t),
				redis: site.NewRedis(t), seed: seed(t), uploads: site.Number(t, "MEDIA_TEST_UPLOADS", 8), atOnce: 6, minSize: mib, maxSize: 40 * mib,
			}
			r.run()
		})
	}
}
