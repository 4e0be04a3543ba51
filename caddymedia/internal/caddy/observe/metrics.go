package observe

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/cache"
)

// uploads counts the uploads in progress of all configurations.
var uploads = map[item.Kind]*atomic.Int64{item.Image: new(atomic.Int64), item.File: new(atomic.Int64)}

// metrics start at zero with every configuration, as all of Caddy's do. No label holds a name or an
// address that a caller chose.
type metrics struct {
	registry *prometheus.Registry

	items, bytes, replaced, deleted *prometheus.CounterVec // by kind and alias
	served                          *prometheus.CounterVec
	refusals                        *prometheus.CounterVec
	failures                        *prometheus.CounterVec
	uploadTimes                     *prometheus.HistogramVec
	variants                        *prometheus.CounterVec
	variantTimes                    *prometheus.HistogramVec
	renditions                      *prometheus.CounterVec
	renditionTimes                  *prometheus.HistogramVec
	logins, tickets                 *prometheus.CounterVec // by result
	resumable                       *prometheus.CounterVec // by kind and event
	resumableBytes, resumed         *prometheus.CounterVec
	operations                      *prometheus.HistogramVec
	usable                          *prometheus.GaugeVec
	unfinished, unfinishedBytes     *prometheus.GaugeVec // by storage
	trash, trashBytes               *prometheus.GaugeVec // by kind and alias
	checks                          *prometheus.CounterVec
	checkTimes                      *prometheus.HistogramVec
	checkUp                         *prometheus.GaugeVec
}

func newMetrics(registry *prometheus.Registry) *metrics {
	m := &metrics{
		registry: registry,
		items:    counter("stored_items_total", "Items that were stored, those that replaced another included.", "kind", "alias"),
		bytes:    counter("stored_bytes_total", "Bytes of the items that were stored.", "kind", "alias"),
		replaced: counter("replaced_items_total", "Items that replaced another.", "kind", "alias"),
		deleted:  counter("deleted_items_total", "Items that were deleted.", "kind", "alias"),
		served:   counter("served_bytes_total", "Bytes of stored items that were sent, redirects not counted.", "kind", "alias"),
		refusals: counter("refusals_total", "Items, and requests as a whole, that were refused or could not be stored.", "kind", "reason"),
		failures: counter("failed_requests_total", "Requests that were refused or failed, by the status of their answer.", "endpoint", "status"),
		uploadTimes: seconds("upload_seconds", "How long uploads took, from the first byte of their body until they were stored or refused.",
			prometheus.ExponentialBuckets(0.005, 4, 10), "kind", "result"),
		variants: counter("variants_total", "WebP variants of images: made, larger than the image and kept, or none because none can be made.",
			"alias", "result"),
		variantTimes: seconds("variant_seconds", "Time to decode an image and to make its variant, the wait in the queue included.",
			prometheus.ExponentialBuckets(0.005, 4, 8), "alias"),
		renditions: counter("renditions_total", "Renditions of images: made, none because the image cannot be rendered, or failed.",
			"alias", "rendition", "result"),
		renditionTimes: seconds("rendition_seconds", "Time to fetch, decode and render an image, the wait in the queue included.",
			prometheus.ExponentialBuckets(0.005, 4, 8), "alias"),
		logins:  counter("logins_total", "Requests for a token with an API key and a password.", "result"),
		tickets: counter("tickets_total", "Requests for a ticket with a token.", "result"),
		resumable: counter("resumable_uploads_total", "Resumable uploads that were created, and that ended: finished, refused, terminated or expired.",
			"kind", "event"),
		resumableBytes: counter("resumable_bytes_total", "Bytes that resumable uploads received.", "kind"),
		resumed:        counter("resumed_requests_total", "Requests that added bytes to a resumable upload behind its first ones.", "kind"),
		operations: seconds("storage_operation_seconds", "How long the operations of a storage took.",
			prometheus.ExponentialBuckets(0.0005, 4, 10), "storage", "operation", "result"),
		usable:          gauge("storage_up", "Whether the last check of a storage found that it can be used.", "storage"),
		unfinished:      gauge("unfinished_uploads", "Resumable uploads that a storage holds and that are not finished.", "storage"),
		unfinishedBytes: gauge("unfinished_bytes", "Bytes of the resumable uploads that are not finished.", "storage"),
		trash:           gauge("trash_items", "Versions of items in the trash of an alias.", "kind", "alias"),
		trashBytes:      gauge("trash_bytes", "Bytes of the versions in the trash of an alias.", "kind", "alias"),
		checks: counter("checks_total", "Files that another program was asked about: accepted, refused, too large for it, or unanswered.",
			"kind", "alias", "check", "result"),
		checkTimes: seconds("check_seconds", "Time to ask another program about a file, the wait for a turn included.",
			prometheus.ExponentialBuckets(0.001, 4, 9), "kind", "alias", "check"),
		checkUp: gauge("check_up", "Whether the program of a check has answered when it was last asked.", "kind", "alias", "check"),
	}
	registry.MustRegister(m.items, m.bytes, m.replaced, m.deleted, m.served, m.refusals, m.failures, m.uploadTimes,
		m.variants, m.variantTimes, m.renditions, m.renditionTimes, m.logins, m.tickets, m.resumable, m.resumableBytes, m.resumed, m.operations, m.usable,
		m.unfinished, m.unfinishedBytes, m.trash, m.trashBytes, m.checks, m.checkTimes, m.checkUp)
	m.addZeros()
	return m
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "caddy", Subsystem: "media", Name: name, Help: help,
	}, labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "caddy", Subsystem: "media", Name: name, Help: help,
	}, labels)
}

func seconds(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "caddy", Subsystem: "media", Name: name, Help: help, Buckets: buckets,
	}, labels)
}

// addZeros adds the series with known labels. The rate of a series that appears with its first
// count misses that count.
func (m *metrics) addZeros() {
	for _, result := range service.LoginResults() {
		m.logins.WithLabelValues(string(result))
	}
	for _, result := range service.TicketResults() {
		m.tickets.WithLabelValues(string(result))
	}
	for _, kind := range []item.Kind{item.Image, item.File} {
		for _, reason := range item.Reasons() {
			m.refusals.WithLabelValues(string(kind), reason.String())
		}
		for _, event := range resumable.Events() {
			m.resumable.WithLabelValues(string(kind), string(event))
		}
		m.resumableBytes.WithLabelValues(string(kind))
		m.resumed.WithLabelValues(string(kind))
		m.gauge("uploads_in_progress", "Uploads that are being received, checked or stored.",
			prometheus.Labels{"kind": string(kind)}, func() int { return int(uploads[kind].Load()) })
	}
}

// Images adds the gauges of the work on images.
func (m *metrics) Images(maker *render.Maker) {
	m.gauge("waiting_images", "Images that wait to be decoded and encoded.", nil, maker.Waiting)
	m.gauge("working_images", "Images that are being decoded and encoded.", nil, maker.Working)
}

// Cache adds the counters of the read cache of a storage.
func (m *metrics) Cache(storage string, stats func() cache.Stats) {
	labels := prometheus.Labels{"storage": storage}
	m.gauge("cache_bytes", "Bytes in the folder of the read cache.", labels, func() int { return int(stats().Bytes) })
	m.gauge("cache_entries", "Blocks and descriptions of items in the read cache.", labels, func() int { return stats().Entries })
	for _, c := range []struct {
		name, help string
		count      func(cache.Stats) int64
	}{
		{"cache_hits_total", "Blocks that were read from the cache.", func(s cache.Stats) int64 { return s.Hits }},
		{"cache_misses_total", "Blocks that were fetched from the storage.", func(s cache.Stats) int64 { return s.Misses }},
		{"cache_evicted_total", "Entries that were removed to make room.", func(s cache.Stats) int64 { return s.Evicted }},
		{"cache_damaged_total", "Entries that were damaged or could not be read.", func(s cache.Stats) int64 { return s.Damaged }},
	} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: "caddy", Subsystem: "media", Name: c.name, Help: c.help, ConstLabels: labels,
		}, func() float64 { return float64(c.count(stats())) }))
	}
}

// gauge adds a gauge with the value of count.
func (m *metrics) gauge(name, help string, labels prometheus.Labels, count func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "caddy", Subsystem: "media", Name: name, Help: help, ConstLabels: labels,
	}, func() float64 { return float64(count()) }))
}

func (m *metrics) uploaded(kind item.Kind, stored bool, took time.Duration) {
	result := "refused"
	if stored {
		result = "ok"
	}
	m.uploadTimes.WithLabelValues(string(kind), result).Observe(took.Seconds())
}

func (m *metrics) variant(alias *item.Alias, result item.VariantResult, took time.Duration) {
	m.variants.WithLabelValues(alias.Name, string(result)).Inc()
	m.variantTimes.WithLabelValues(alias.Name).Observe(took.Seconds())
}

func (m *metrics) rendered(alias *item.Alias, r *item.Rendition, result derived.RenditionResult, took time.Duration) {
	m.renditions.WithLabelValues(alias.Name, r.Name, string(result)).Inc()
	m.renditionTimes.WithLabelValues(alias.Name).Observe(took.Seconds())
}

func (m *metrics) up(storage string, ok bool) {
	value := 0.0
	if ok {
		value = 1
	}
	m.usable.WithLabelValues(storage).Set(value)
}

func (m *metrics) operation(storage, op string, took time.Duration, err error) {
	result := "ok"
	if storagedrivers.Fault(op, err) { // a request for a missing object is none
		result = "error"
	}
	m.operations.WithLabelValues(storage, op, result).Observe(took.Seconds())
}

func (m *metrics) changed(change upload.Change) {
	labels := []string{string(change.Alias.Kind), change.Alias.Name}
	switch change.Action {
	case upload.Deleted:
		m.deleted.WithLabelValues(labels...).Inc()
		return
	case upload.Replaced:
		m.replaced.WithLabelValues(labels...).Inc()
	case upload.Stored:
	case upload.Unchanged, upload.Purged:
		return
	}
	m.items.WithLabelValues(labels...).Inc()
	m.bytes.WithLabelValues(labels...).Add(float64(change.Item.Size))
}
