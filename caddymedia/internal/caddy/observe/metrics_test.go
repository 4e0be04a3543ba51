package observe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// TestOperationResults: a request for a missing object does not count as an error of the storage.
func TestOperationResults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op   string
		err  error
		want string
	}{
		{"open", nil, "ok"},
		{"open", fs.ErrNotExist, "ok"},
		{"stat", fs.ErrNotExist, "ok"},
		{"commit", fmt.Errorf("taken: %w", fs.ErrExist), "ok"},
		{"open", context.Canceled, "ok"},
		{"commit", fs.ErrNotExist, "error"}, // its folder is gone
		{"check", fs.ErrNotExist, "error"},
		{"open", storagedrivers.ErrUnavailable, "error"},
		{"open", fs.ErrPermission, "error"},
		{"open", errors.New("anything else"), "error"},
	} {
		m := newMetrics(prometheus.NewPedanticRegistry())
		m.operation("far", tt.op, 0, tt.err)
		m.operations.WithLabelValues("far", tt.op, tt.want)
		if n := testutil.CollectAndCount(m.operations); n != 1 {
			t.Errorf("%s: %v is not counted as %s", tt.op, tt.err, tt.want)
		}
	}
}

// TestTrashHeld: the gauges have the last values of each alias.
func TestTrashHeld(t *testing.T) {
	t.Parallel()
	o := &Observer{metrics: newMetrics(prometheus.NewPedanticRegistry())}
	photos, docs := &item.Alias{Kind: item.Image, Name: "photos"}, &item.Alias{Kind: item.File, Name: "docs"}
	o.TrashHeld(photos, service.Count{Objects: 3, Bytes: 5})
	o.TrashHeld(docs, service.Count{Objects: 1, Bytes: 9})
	o.TrashHeld(photos, service.Count{Objects: 2, Bytes: 4})
	for alias, want := range map[*item.Alias][2]float64{photos: {2, 4}, docs: {1, 9}} {
		labels := []string{string(alias.Kind), alias.Name}
		got := [2]float64{testutil.ToFloat64(o.trash.WithLabelValues(labels...)), testutil.ToFloat64(o.trashBytes.WithLabelValues(labels...))}
		if got != want {
			t.Errorf("%s: %v, want %v", alias.Name, got, want)
		}
	}
}

// TestUnfinishedUploads: the gauges have the last values of each storage.
func TestUnfinishedUploads(t *testing.T) {
	t.Parallel()
	o := &Observer{metrics: newMetrics(prometheus.NewPedanticRegistry())}
	o.ResumableOpen("near", resumable.Open{Uploads: 3, Bytes: 5})
	o.ResumableOpen("far", resumable.Open{Uploads: 1})
	o.ResumableOpen("near", resumable.Open{Uploads: 2, Bytes: 4})
	for storage, want := range map[string][2]float64{"near": {2, 4}, "far": {1, 0}} {
		got := [2]float64{
			testutil.ToFloat64(o.unfinished.WithLabelValues(storage)), testutil.ToFloat64(o.unfinishedBytes.WithLabelValues(storage)),
		}
		if got != want {
			t.Errorf("%s: %v, want %v", storage, got, want)
		}
	}
}
