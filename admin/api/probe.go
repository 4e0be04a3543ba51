package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/caddymedia/media/caddymedia/httpjson"
	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/storagedrivers"
)

type probeAnswer struct {
	OK         bool              `json:"ok"`
	Steps      []stepAnswer      `json:"steps"`
	Guarantees []guaranteeAnswer `json:"guarantees"`
}

type stepAnswer struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	OK      bool   `json:"ok"`
	TookMS  int64  `json:"took_ms"`
	Message string `json:"message"`
	Detail  string `json:"detail"`
	Note    string `json:"note"`
}

// maxProbeBody is the maximum size of a probe request in bytes.
const maxProbeBody = 1 << 20

// probeSaved probes a configured storage.
func (c *call) probeSaved() error {
	name := c.args[0]
	storage, ok := c.service.Storage(name)
	if !ok {
		return noStorage(name)
	}
	return c.probing(func() error {
		ctx, cancel := c.bounded()
		defer cancel()
		report := storage.Probe(ctx)
		return c.report(c.app.Driver(name).Describe(), report, storage.Features())
	})
}

// probeUnsaved probes the storage in the body of the request.
func (c *call) probeUnsaved() error {
	driver, err := c.driverInBody()
	if err != nil {
		return err
	}
	return c.try(driver)
}

// driverInBody returns the driver in the body of the request.
func (c *call) driverInBody() (json.RawMessage, error) {
	var body struct {
		Driver json.RawMessage `json:"driver"`
	}
	err := httpjson.Read(c.w, c.r, maxProbeBody, &body)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, failf(http.StatusRequestEntityTooLarge, "The request is larger than 1 MiB.")
	}
	if err != nil || !bytes.HasPrefix(body.Driver, []byte("{")) {
		return nil, failf(http.StatusBadRequest, `The body is no JSON such as {"driver": {"name": "local", "root": "/srv/media"}}.`)
	}
	return body.Driver, nil
}

// Try probes driver and answers like POST /probe. driver is written as in a configuration, with its
// secrets.
func (h *Handler) Try(w http.ResponseWriter, r *http.Request, driver json.RawMessage) {
	h.serve(w, r, func(c *call) error { return c.try(driver) })
}

func (c *call) try(driver json.RawMessage) error {
	return c.probing(func() error {
		ctx, cancel := c.bounded()
		defer cancel()
		trial, err := c.app.TryStorage(ctx, driver)
		if wrong, ok := errors.AsType[*mediaapp.ConfigError](err); ok {
			c.secrets = wrong.Secrets
			reason := Reason(wrong.Error())
			return &failure{
				status: http.StatusBadRequest, Message: c.redacted(reason), Option: blamedOption(driver, reason),
			}
		}
		if err != nil {
			return err
		}
		c.secrets = trial.Secrets
		return c.report(trial.Driver, trial.Report, trial.Features)
	})
}

// probing calls f unless too many probes are running.
func (c *call) probing(f func() error) error {
	select {
	case c.handler.probes <- struct{}{}:
		defer func() { <-c.handler.probes }()
		return f()
	default:
		c.w.Header().Set("Retry-After", "5")
		return failf(http.StatusTooManyRequests, "Other storages are being tested already. Try again in a moment.")
	}
}

func (c *call) report(driver storagedrivers.Description, report storagedrivers.Report, features storagedrivers.Features) error {
	result := probeAnswer{OK: report.OK(), Steps: []stepAnswer{}, Guarantees: []guaranteeAnswer{}}
	for i, step := range report.Steps {
		described := stepAnswer{
			Name: step.Name, Title: strings.ToUpper(step.Title[:1]) + step.Title[1:], OK: step.Err == nil,
			TookMS: step.Took.Milliseconds(), Note: step.Note,
		}
		if step.Err != nil {
			described.Message, described.Detail = explain(driver, step.Err), c.redacted(step.Err.Error())
		}
		result.Steps = append(result.Steps, described)
		if i == 0 && step.Err == nil { // the check, after which the features are known
			result.Guarantees = guarantees(features)
		}
	}
	return c.answer(result)
}
