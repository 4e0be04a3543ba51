package storagedrivers

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

// Report is the result of [Storage.Probe].
type Report struct {
	// Steps in their order. Steps that could not be tried after a failure are missing.
	Steps []Step
}

// Step is one step of a probe.
type Step struct {
	// Name identifies the step: "check", which is the first, "create", "create again", "read",
	// "range", "overwrite", "list", "delete", "stat after delete", and after a failure "clean up".
	Name string
	// Title describes the step for display: "store a small object".
	Title string
	// Took is the duration of the step.
	Took time.Duration
	// Err is the cause of a failure, or nil.
	Err error
	// Note is a hint for the administrator, or empty.
	Note string
}

// OK reports whether every step succeeded.
func (r Report) OK() bool { return r.Err() == nil }

// Err joins the errors of the steps, each with the step's name.
func (r Report) Err() error {
	var errs []error
	for _, step := range r.Steps {
		if step.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", step.Name, step.Err))
		}
	}
	return errors.Join(errs...)
}

const (
	noteNotRefused = "The backend did not refuse a second upload of the same name: " +
		"two uploads of one name could overwrite each other."
	noteBestEffort = "The backend does not decide by itself who creates a name: two uploads of one name " +
		"at the same moment, from different servers, could overwrite each other."
)

var (
	errNotRefused = WithCause(errors.New("creating an existing object was not refused"),
		"The backend must refuse a second object of the same name, but did not: two uploads of one name could overwrite each other.")
	errDiffers = WithCause(errors.New("the object differs from the stored bytes"),
		"A stored object came back changed. A cache or proxy on the way returns old or other content.")
	errNotListed = WithCause(errors.New("the stored object is not listed"),
		"A stored object is missing from the listing. The panel, copies and sweeps would not find it.")
	errStillThere = WithCause(errors.New("the deleted object is still there"),
		"A deleted object is still there. A cache or proxy on the way returns old content.")
)

// Probe tests the storage with its own object under a random key, which it removes at the end. It
// tests whether the configuration works, and whether the backend prevents two uploads from
// overwriting each other.
func (s *Storage) Probe(ctx context.Context) Report {
	random := rand.Text()
	p := &probe{
		storage: s,
		key:     "media-probe-" + random + ".txt", // in the root: a folder would stay
		first:   "first " + random,
		second:  "the second, longer " + random,
	}
	p.run(ctx)
	return p.report
}

type probe struct {
	storage       *Storage
	key           string
	first, second string
	report        Report
}

// run runs the steps. After a failure it continues as long as further steps are meaningful.
func (p *probe) run(ctx context.Context) {
	s := p.storage
	if !p.step("check", p.checkTitle(), func() error { return s.Check(ctx) }) {
		return
	}
	if !p.step("create", "store a small object", func() error { return p.put(ctx, p.first, CreateOnly) }) {
		_ = p.remove(ctx) // its reply may be lost; the first failure counts
		return
	}
	p.createAgain(ctx)
	p.step("read", "read the object", func() error { return p.read(ctx, Range{}, p.first) })
	p.step("range", "read a part of the object", func() error {
		return p.read(ctx, Range{Offset: 2, Length: 10}, p.first[2:12])
	})
	p.step("overwrite", "replace the object", func() error {
		if err := p.put(ctx, p.second, Overwrite); err != nil {
			return err
		}
		return p.read(ctx, Range{}, p.second)
	})
	p.step("list", "find the object in a listing", func() error { return p.isListed(ctx) })
	if p.step("delete", "delete the object", func() error { return s.Delete(ctx, p.key) }) &&
		p.step("stat after delete", "check that the object is gone", func() error { return p.isGone(ctx) }) {
		return
	}
	if !p.step("clean up", "clean up", func() error { return p.remove(ctx) }) {
		p.note("The object " + p.key + " may have stayed behind.")
	}
}

func (p *probe) checkTitle() string {
	driver := p.storage.opts.Description
	title := "find the " + cmp.Or(driver.Noun, "root")
	if !driver.Local {
		title = "connect, log in and " + title
	}
	return title
}

// step runs one step and reports whether it succeeded.
func (p *probe) step(name, title string, f func() error) bool {
	start := p.storage.now()
	err := f()
	p.report.Steps = append(p.report.Steps, Step{Name: name, Title: title, Took: p.storage.now().Sub(start), Err: err})
	return err == nil
}

// note adds a text to the last step.
func (p *probe) note(text string) { p.report.Steps[len(p.report.Steps)-1].Note = text }

func (p *probe) put(ctx context.Context, text string, mode Mode) error {
	_, err := p.storage.Put(ctx, p.key, strings.NewReader(text), PutOptions{Mode: mode})
	return err
}

// createAgain expects the backend to refuse a second creation. It sends the same bytes, so that a
// backend that does not refuse it still passes the other steps.
func (p *probe) createAgain(ctx context.Context) {
	refused := p.step("create again", "refuse a second object of the same name", func() error {
		err := p.put(ctx, p.first, CreateOnly)
		if err == nil {
			return errNotRefused
		}
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	})
	switch {
	case !refused && errors.Is(p.report.Err(), errNotRefused):
		p.note(noteNotRefused)
	case refused && p.storage.Features().Create != Atomic:
		p.note(noteBestEffort)
	}
}

func (p *probe) read(ctx context.Context, rng Range, want string) error {
	body, _, err := p.storage.Open(ctx, p.key, rng)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(io.LimitReader(body, int64(len(want))+1))
	if err = errors.Join(err, body.Close()); err != nil {
		return err
	}
	if string(got) != want {
		return errDiffers
	}
	return nil
}

func (p *probe) isListed(ctx context.Context) error {
	for info, err := range p.storage.All(ctx, p.key) {
		if err != nil {
			return err
		}
		if info.Key == p.key {
			return nil
		}
	}
	return errNotListed
}

func (p *probe) isGone(ctx context.Context) error {
	_, err := p.storage.Stat(ctx, p.key)
	if err == nil {
		return errStillThere
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// remove removes the object, also after the end of ctx.
func (p *probe) remove(ctx context.Context) error {
	return p.storage.Delete(context.WithoutCancel(ctx), p.key)
}
