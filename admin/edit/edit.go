package edit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/caddymedia/media/storagedrivers/options"
)

// Editor reads and changes the configuration of the media app. Other editors may change it at the
// same time. An Editor is safe for concurrent use.
type Editor struct {
	client *Client
	log    *zap.Logger
	sync   func(path string) error
}

// New returns an editor.
func New(client *Client, log *zap.Logger) *Editor { return &Editor{client, log, syncFile} }

// Change is a change of an entry.
type Change struct {
	Section Section
	Name    string
	Condition
	// Value holds the options that are set, without secrets.
	Value map[string]any
	// Secrets are new values of secrets by path. An empty value removes the secret. A secret that
	// is not listed keeps its value, unless a storage gets another driver.
	Secrets map[string]string
	// NewPassword generates a password for an account.
	NewPassword bool
}

// Saved is the result of a change.
type Saved struct {
	Entry   *Entry
	Created bool
	// Password is the generated password. It cannot be read later.
	Password string
}

// maxAttempts is how often a change is tried while other changes conflict with it.
const maxAttempts = 5

// Running returns the configuration of the app as it is written, secrets included.
func (e *Editor) Running(ctx context.Context) (map[string]any, error) {
	app, _, err := e.client.read(ctx)
	return app, reachable(err)
}

// read loads the running configuration.
func (e *Editor) read(ctx context.Context, defaults bool) (config, error) {
	app, err := e.Running(ctx)
	if err != nil {
		return config{}, err
	}
	return load(app, defaults)
}

// reachable replaces errUnanswered by an error for the administrator.
func reachable(err error) error {
	if errors.Is(err, errUnanswered) {
		return &Error{Status: http.StatusBadGateway, Message: fmt.Sprintf("Caddy's admin endpoint cannot be reached: %v", err)}
	}
	return err
}

// Entry returns an entry. The error is an [Error], with StatusNotFound if there is no such entry.
func (e *Editor) Entry(ctx context.Context, s Section, name string) (*Entry, error) {
	if sections[s] == "" {
		return nil, s.check(name)
	}
	c, err := e.read(ctx, true)
	if err != nil {
		return nil, err
	}
	if view := c.view(s, name); view != nil {
		return view, nil
	}
	return nil, missing(s, name)
}

// Put adds or changes an entry. When it returns, the new configuration is running; after an error
// the old one is. The error is an [Error] if the administrator can correct the cause.
func (e *Editor) Put(ctx context.Context, change Change) (*Saved, error) {
	if err := change.Section.check(change.Name); err != nil {
		return nil, err
	}
	saved := new(Saved)
	if change.NewPassword {
		password, hash, err := newPassword()
		if err != nil {
			return nil, err
		}
		saved.Password = password
		if change, err = change.withHash(hash); err != nil {
			return nil, err
		}
	}
	changed, err := e.change(ctx, change.Section, change.Name, func(c config) error {
		current := c.view(change.Section, change.Name)
		if err := change.check(change.Section, change.Name, current); err != nil {
			return err
		}
		entry, err := c.applied(change)
		if err != nil {
			return err
		}
		c.set(change.Section, change.Name, entry)
		saved.Created = current == nil
		return nil
	})
	if err != nil {
		return nil, redacted(change.blame(err), change.Secrets)
	}
	saved.Entry = changed.view(change.Section, change.Name)
	if _, renewed := change.Secrets[hashOption]; renewed && change.Section == Accounts {
		e.endTokens(ctx, change.Name)
	}
	return saved, nil
}

// withHash returns the change with the hash of a new password.
func (change Change) withHash(hash string) (Change, error) {
	if change.Section != Accounts {
		return change, refused("", "only accounts have passwords")
	}
	change.Secrets = map[string]string{hashOption: hash}
	return change, nil
}

// blame adds the option at fault to an error of Caddy.
func (change Change) blame(err error) error {
	failed, ok := errors.AsType[*Error](err)
	if !ok || failed.Status != http.StatusBadRequest || failed.Option != "" {
		return err
	}
	// An error of another entry is not the fault of an option of this one.
	reason, own := strings.CutPrefix(failed.Message, change.Section.title(change.Name)+": ")
	if opts, err := change.Section.options(driverOf(change.Value)); own && err == nil {
		failed.Option = options.Blamed(reason, opts)
	}
	return failed
}

// applied returns the entry that results from a change.
func (c config) applied(change Change) (object, error) {
	kind := driverOf(change.Value)
	opts, err := change.Section.options(kind)
	if err != nil {
		return nil, err
	}
	old := group(c.section(change.Section), change.Name)
	if change.Section == Storages && driverOf(old) != kind {
		old = withoutDriver(old)
	}
	return merged(opts, old, change.Value, change.Secrets)
}

// withoutDriver returns a storage without its driver, for a change to another driver. No option of
// the old driver means the same to the new one, and its secrets must not reach the new one.
func withoutDriver(entry object) object {
	rest := object{}
	for name, value := range entry {
		if name != driverGroup {
			rest[name] = value
		}
	}
	return rest
}

// Delete removes an entry. The error is an [Error] as with [Editor.Put], with StatusConflict and
// the uses if other entries need this one.
func (e *Editor) Delete(ctx context.Context, s Section, name string, expected Condition) error {
	if sections[s] == "" {
		return s.check(name)
	}
	_, err := e.change(ctx, s, name, func(c config) error {
		if err := expected.check(s, name, c.view(s, name)); err != nil {
			return err
		}
		if err := c.removable(s, name); err != nil {
			return err
		}
		c.remove(s, name)
		return nil
	})
	if err != nil {
		return redacted(err, nil)
	}
	if s == Accounts {
		e.endTokens(ctx, name)
	}
	return nil
}

// turn is held by the running change. Changes of this process wait for each other and do not use up
// their attempts; only other processes can interfere.
var turn = make(chan struct{}, 1)

// change makes one change of the configuration, to one entry, and returns the changed configuration.
// It continues if the caller leaves, because the outcome of an interrupted change would be unknown.
func (e *Editor) change(ctx context.Context, s Section, name string, apply func(config) error) (config, error) {
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return config{}, &Error{Status: http.StatusServiceUnavailable, Message: "the change was given up before it was made"}
	}
	changed, err := e.attempt(context.WithoutCancel(ctx), s, name, apply)
	if err == nil {
		e.syncAutosave()
	}
	return changed, err
}

// attempt makes a change, and repeats it while others interfere.
func (e *Editor) attempt(ctx context.Context, s Section, name string, apply func(config) error) (changed config, err error) {
	var unanswered bool
	for range maxAttempts {
		app, tag, err := e.client.read(ctx)
		if err != nil {
			return changed, reachable(err)
		}
		c, err := load(app, true)
		if err != nil {
			return changed, err
		}
		// A change that has arrived stands, whatever was changed since.
		if unanswered && bytes.Equal(canonical(c.section(s)[name]), canonical(changed.section(s)[name])) {
			return c, nil
		}
		if err := apply(c); err != nil {
			return changed, err
		}
		if changed, err = load(c.app, false); err != nil {
			return changed, refused("", "%v", err)
		}
		err = e.client.write(ctx, withIDs(app, changed.app), tag)
		switch {
		case errors.Is(err, errUnanswered):
			unanswered = true
		case !errors.Is(err, errChanged):
			return changed, err
		}
	}
	return changed, &Error{Status: http.StatusBadGateway, Message: "the configuration is being changed all the time, or Caddy's admin endpoint does not answer: try again"}
}

// Driver returns the options of a storage that is not saved. They are those of value, and the
// secrets that are not given from the storage called keep, if that has the same driver.
func (e *Editor) Driver(ctx context.Context, value map[string]any, secrets map[string]string, keep string) (map[string]any, error) {
	change := Change{Section: Storages, Name: keep, Value: object{driverGroup: value}, Secrets: secrets}
	var c config
	if keep != "" {
		var err error
		if c, err = e.read(ctx, true); err != nil {
			return nil, err
		}
		if c.section(Storages)[keep] == nil {
			return nil, missing(Storages, keep)
		}
	}
	entry, err := c.applied(change)
	if err != nil {
		return nil, err
	}
	return group(entry, driverGroup), nil
}
