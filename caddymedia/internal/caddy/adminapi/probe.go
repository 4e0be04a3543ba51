package adminapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/leaf/check"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
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
		report := c.service.Probe(ctx, storage)
		return c.report(c.app.Driver(name).Describe(), report, storage.Features())
	})
}

// probeCheck asks the program of a check of an alias about test files.
func (c *call) probeCheck() error {
	alias, ok := c.service.Alias(item.Kind(c.args[0]), c.args[1])
	if !ok {
		return failf(http.StatusNotFound, "There is no alias %.64q.", c.args[1])
	}
	i := slices.IndexFunc(alias.Checks, func(check *check.Check) bool { return check.Name == c.args[2] })
	if i < 0 {
		return failf(http.StatusNotFound, "The alias %s has no check %.64q.", alias.Name, c.args[2])
	}
	return c.probing(func() error {
		ctx, cancel := c.bounded()
		defer cancel()
		report := alias.Checks[i].Probe(ctx)
		return c.answer(probeAnswer{OK: report.OK(), Steps: c.steps(storagedrivers.Description{}, report), Guarantees: []guaranteeAnswer{}})
	})
}

// exampleDriver is a body with an unsaved storage.
const exampleDriver = `{"driver": {"name": "local", "root": "/srv/media"}}`

// driverInBody returns the driver in the body of the request, written as in a configuration, with
// its secrets.
func (c *call) driverInBody() (json.RawMessage, error) {
	var body struct {
		Driver json.RawMessage `json:"driver"`
	}
	if err := c.readJSON(&body, exampleDriver); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(body.Driver, []byte("{")) {
		return nil, failf(http.StatusBadRequest, "The body is no JSON such as %s.", exampleDriver)
	}
	return body.Driver, nil
}

// editedDriver returns the driver in the body of a request to the editor. Its secrets are apart.
// Those that are missing are taken from a saved storage.
func (c *call) editedDriver() (json.RawMessage, error) {
	var body struct {
		Driver  object            `json:"driver"`
		Secrets map[string]string `json:"secrets"` // by path
		Keep    string            `json:"keep"`    // the name of the saved storage
	}
	if err := c.readJSON(&body, exampleDriver); err != nil {
		return nil, err
	}
	if c.handler.editor.client == nil {
		return nil, errOff
	}
	driver, err := c.handler.editor.driver(c.r.Context(), body.Driver, body.Secrets, body.Keep)
	if err != nil {
		return nil, err
	}
	return canonical(driver), nil
}

// probeUnsaved probes the storage in the body of the request.
func (c *call) probeUnsaved() error {
	read := c.driverInBody
	if c.handler.editor != nil {
		read = c.editedDriver
	}
	driver, err := read()
	if err != nil {
		return err
	}
	return c.probing(func() error {
		ctx, cancel := c.bounded()
		defer cancel()
		trial, err := c.app.TryStorage(ctx, driver)
		if wrong, ok := errors.AsType[*plugin.ConfigError](err); ok {
			c.secrets = wrong.Secrets
			reason := reasonOf(wrong.Error())
			refusal := failf(http.StatusBadRequest, "%s", c.redacted(reason))
			var named object
			_ = json.Unmarshal(driver, &named) // without a name there is no such driver
			if opts, err := storages.options(driverOf(object{driverGroup: named})); err == nil {
				refusal.Option = options.Blamed(reason, opts)
			}
			return refusal
		}
		if err != nil {
			return err
		}
		c.secrets = trial.Secrets
		return c.report(trial.Driver, trial.Report, trial.Features)
	})
}

// hostKey returns the key that the host of the storage in the body of the request presents. It
// connects as a probe does. The key is not trusted yet.
func (c *call) hostKey() error {
	driver, err := c.driverInBody()
	if err != nil {
		return err
	}
	return c.probing(func() error {
		ctx, cancel := c.bounded()
		defer cancel()
		key, description, err := plugin.HostKey(ctx, driver)
		if errors.Is(err, plugin.ErrNoHostKey) {
			return failf(http.StatusBadRequest, "Hosts of this driver have no key.")
		}
		if err != nil {
			return failf(http.StatusBadGateway, "%s", explain(description, err))
		}
		return c.answer(hostKeyAnswer{HostKey: key.Key, Fingerprint: key.Fingerprint})
	})
}

type hostKeyAnswer struct {
	HostKey     string `json:"host_key"`
	Fingerprint string `json:"fingerprint"`
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
	result := probeAnswer{OK: report.OK(), Steps: c.steps(driver, report), Guarantees: []guaranteeAnswer{}}
	if len(report.Steps) > 0 && report.Steps[0].Err == nil { // the check, after which the features are known
		result.Guarantees = guarantees(features)
	}
	return c.answer(result)
}

// steps describes the steps of a report.
func (c *call) steps(driver storagedrivers.Description, report storagedrivers.Report) []stepAnswer {
	steps := make([]stepAnswer, len(report.Steps))
	for i, step := range report.Steps {
		steps[i] = stepAnswer{
			Name: step.Name, Title: strings.ToUpper(step.Title[:1]) + step.Title[1:], OK: step.Err == nil,
			TookMS: step.Took.Milliseconds(), Note: step.Note,
		}
		if step.Err != nil {
			steps[i].Message, steps[i].Detail = explain(driver, step.Err), c.redacted(step.Err.Error())
		}
	}
	return steps
}

// Prefixes that Caddy adds to the reason why it cannot load a configuration or a driver.
const (
	ofApp    = "loading media app module: "
	ofConfig = "loading new config: "
)

var (
	ofProvision = regexp.MustCompile(`^provision media: `)
	ofDriver    = regexp.MustCompile(`(loading the driver: )?(loading module|module name) '[a-z0-9_]+': ` +
		`((decoding module config: |provision )?media\.storages\.[a-z0-9_]+: (invalid configuration: )?)?`)
)

// reasonOf removes the parts of an error of Caddy, about a configuration or a driver, that mean
// nothing to an administrator.
func reasonOf(message string) string {
	message = strings.TrimPrefix(message, ofConfig)
	if _, after, ok := strings.Cut(message, ofApp); ok {
		message = ofProvision.ReplaceAllString(after, "")
	}
	if at := ofDriver.FindStringIndex(message); at != nil {
		message = message[:at[0]] + message[at[1]:]
	}
	return message
}
