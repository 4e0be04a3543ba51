package mediaapp

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddymedia/media/caddymedia/ingest"
)

// metrics begin anew with every configuration, as all of Caddy's do. No label is ever a
// name or an address that a caller chose.
type metrics struct {
	items      *prometheus.CounterVec
	bytes      *prometheus.CounterVec
	failures   *prometheus.CounterVec
	operations *prometheus.HistogramVec
	variants   *prometheus.CounterVec
	usable     *prometheus.GaugeVec
	registry   *prometheus.Registry
}

func newMetrics(registry *prometheus.Registry) *metrics {
	m := &metrics{
		registry: registry,
		items: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "caddy", Subsystem: "media", Name: "stored_items_total",
			Help: "Items that were stored.",
		}, []string{"kind", "alias"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "caddy", Subsystem: "media", Name: "stored_bytes_total",
			Help: "Bytes of the items that were stored.",
		}, []string{"kind", "alias"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "caddy", Subsystem: "media", Name: "failed_requests_total",
			Help: "Requests that were refused or failed, by the status of their answer.",
		}, []string{"endpoint", "status"}),
		operations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "caddy", Subsystem: "media", Name: "storage_operation_seconds",
			Help:    "How long the operations of a storage took.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 10),
		}, []string{"storage", "operation", "result"}),
		variants: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "caddy", Subsystem: "media", Name: "variants_total",
			Help: "WebP variants of pictures: made, larger than the picture and kept, or none because none can be made.",
		}, []string{"alias", "result"}),
		usable: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "caddy", Subsystem: "media", Name: "storage_up",
			Help: "Whether the last check of a storage found that it can be used.",
		}, []string{"storage"}),
	}
	registry.MustRegister(m.items, m.bytes, m.failures, m.operations, m.variants, m.usable)
	return m
}

// waiting tells how many pictures are in line.
func (m *metrics) waiting(count func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "caddy", Subsystem: "media", Name: "waiting_pictures",
		Help: "Pictures that wait to be decoded and encoded.",
	}, count))
}

func (m *metrics) variant(alias *ingest.Alias, result ingest.VariantResult) {
	m.variants.WithLabelValues(alias.Name, string(result)).Inc()
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
	if err != nil {
		result = "error"
	}
	m.operations.WithLabelValues(storage, op, result).Observe(took.Seconds())
}

// CountFailure counts a request that was refused or failed. endpoint is one of a fixed
// few: "token", "image", "file", "static".
func (a *App) CountFailure(endpoint, status string) {
	a.metrics.failures.WithLabelValues(endpoint, status).Inc()
}

// stored counts an item and tells the subscribers of its event.
func (a *App) stored(ctx context.Context, alias *ingest.Alias, item ingest.Item) {
	a.metrics.items.WithLabelValues(string(alias.Kind), alias.Name).Inc()
	a.metrics.bytes.WithLabelValues(string(alias.Kind), alias.Name).Add(float64(item.Size))
	a.events.stored(ctx, alias, item)
}
