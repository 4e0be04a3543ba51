package edit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"go.uber.org/zap"

	"github.com/caddymedia/media/storagedrivers/options"
)

// Editor reads and changes the configuration of the media app, as one of several that may
// do so at once. It is safe for concurrent use.
type Editor struct {
	client *Client
	log    *zap.Logger
}

// New makes an editor.
func New(client *Client, log *zap.Logger) *Editor { return &Editor{client, log} }

// Change is what becomes of an entry.
type Change struct {
	Section Section
	Name    string
	Condition
	// Value has the options that are given, without secrets.
	Value map[string]any
	// Secrets are new values by their paths; an empty one is removed, and one that is not
	// named stays as it is, unless a storage gets another kind of driver.
	Secrets map[string]string
	// NewPassword gives an account a password that is made for it.
	NewPassword bool
}

// Saved is a change that was made.
type Saved struct {
	Entry   *Entry
	Created bool
	// Password is the one that was made. It can be read nowhere else.
	Password string
}

// maxAttempts is how often a change is made anew when something else was changed meanwhile.
const maxAttempts = 5

// Running gives the configuration of the app as it is written, secrets included.
func (e *Editor) Running(ctx context.Context) (map[string]any, error) {
	app, _, err := e.client.read(ctx)
	return app, reachable(err)
}

func (e *Editor) read(ctx context.Context) (config, error) {
	app, _, err := e.client.read(ctx)
	c := config{app}
	c.fold()
	return c, reachable(err)
}

// reachable words that the endpoint does not answer.
func reachable(err error) error {
	if errors.Is(err, errUnanswered) {
		return &Error{Status: http.StatusBadGateway, Message: fmt.Sprintf("Caddy's admin endpoint cannot be reached: %v", err)}
	}
	return err
}

// Entry gives an entry. The error is an [Error], with StatusNotFound where there is none.
func (e *Editor) Entry(ctx context.Context, s Section, name string) (*Entry, error) {
	if sections[s] == "" {
		return nil, s.check(name)
	}
	c, err := e.read(ctx)
	if err != nil {
		return nil, err
	}
	if view := c.view(s, name); view != nil {
		return view, nil
	}
	return nil, missing(s, name)
}

// Put adds an entry or changes one. When it returns, the new configuration runs; after an
// error the old one does. The error is an [Error] where the administrator can do something.
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
	err := e.change(ctx, change.Section, change.Name, func(c config) error {
		current := c.view(change.Section, change.Name)
		if err := change.check(change.Section, change.Name, current); err != nil {
			return err
		}
		entry, err := c.applied(change)
		if err != nil {
			return err
		}
		c.set(change.Section, change.Name, entry)
		saved.Created, saved.Entry = current == nil, c.view(change.Section, change.Name)
		return nil
	})
	if err != nil {
		return nil, redacted(change.blame(err), change.Secrets)
	}
	if _, renewed := change.Secrets[hashOption]; renewed && change.Section == Accounts {
		e.endTokens(ctx, change.Name)
	}
	return saved, nil
}

// withHash is the change with the hash of a new password.
func (change Change) withHash(hash string) (Change, error) {
	if change.Section != Accounts {
		return change, refused("", "only accounts have passwords")
	}
	change.Secrets = map[string]string{hashOption: hash}
	return change, nil
}

// blame adds the option to an error of Caddy's.
func (change Change) blame(err error) error {
	failed, ok := errors.AsType[*Error](err)
	if !ok || failed.Status != http.StatusBadRequest || failed.Option != "" {
		return err
	}
	// What is wrong with another entry is not the fault of an option here.
	reason, own := strings.CutPrefix(failed.Message, change.Section.title(change.Name)+": ")
	if opts, err := change.Section.options(driverOf(change.Value)); own && err == nil {
		failed.Option = options.Blamed(reason, opts)
	}
	return failed
}

// applied gives the entry that a change makes.
func (c config) applied(change Change) (object, error) {
	kind := driverOf(change.Value)
	opts, err := change.Section.options(kind)
	if err != nil {
		return nil, err
	}
	old, _, _ := c.entry(change.Section, change.Name)
	if change.Section == Storages && driverOf(old) != kind {
		old = withoutDriver(old)
	}
	return merged(opts, old, change.Value, change.Secrets)
}

// withoutDriver is a storage that gets another kind of driver: no option of the old one
// means the same to the new one, a secret least of all.
func withoutDriver(entry object) object {
	rest := object{}
	for name, value := range entry {
		if name != driverGroup {
			rest[name] = value
		}
	}
	return rest
}

// Delete removes an entry. The error is an [Error] as with [Editor.Put], with StatusConflict
// and the uses where something needs the entry.
func (e *Editor) Delete(ctx context.Context, s Section, name string, expected Condition) error {
	if sections[s] == "" {
		return s.check(name)
	}
	err := e.change(ctx, s, name, func(c config) error {
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

// turn is taken by the change that is being made. Those of this process wait for each other,
// so that many at once do not wear out their attempts; only others can come between.
var turn = make(chan struct{}, 1)

// change makes one change of the configuration, to an entry. Once it has begun it goes on
// when the caller leaves: half of a change would be none that anybody knows of.
func (e *Editor) change(ctx context.Context, s Section, name string, apply func(config) error) error {
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return &Error{Status: http.StatusServiceUnavailable, Message: "the change was given up before it was made"}
	}
	ctx = context.WithoutCancel(ctx)
	var unanswered bool
	var sent any // the entry; nil if it was to go
	for range maxAttempts {
		app, tag, err := e.client.read(ctx)
		if err != nil {
			return reachable(err)
		}
		c := config{app}
		c.fold()
		if unanswered && same(c.section(s)[name], sent) { // it arrived, whatever was changed since
			return nil
		}
		if err := apply(c); err != nil {
			return err
		}
		sent = c.section(s)[name]
		err = e.client.write(ctx, app, tag)
		switch {
		case errors.Is(err, errUnanswered):
			unanswered = true
		case !errors.Is(err, errChanged):
			return err
		}
	}
	return &Error{Status: http.StatusBadGateway, Message: "the configuration is being changed all the time, or Caddy's admin endpoint does not answer: try again"}
}

// same compares what was sent with what Caddy has made of it: numbers may look different.
func same(a, b any) bool {
	var left, right any
	return json.Unmarshal(canonical(a), &left) == nil && json.Unmarshal(canonical(b), &right) == nil && reflect.DeepEqual(left, right)
}

// Driver gives the options of a storage that is not saved: value as in the configuration,
// and those secrets that are not given from the storage called keep, if its driver is of
// the same kind.
func (e *Editor) Driver(ctx context.Context, value map[string]any, secrets map[string]string, keep string) (map[string]any, error) {
	change := Change{Section: Storages, Name: keep, Value: object{driverGroup: value}, Secrets: secrets}
	c := config{object{}}
	if keep != "" {
		var err error
		if c, err = e.read(ctx); err != nil {
			return nil, err
		}
		if names := c.all(Storages); names[keep] == nil {
			return nil, missing(Storages, keep)
		}
	}
	entry, err := c.applied(change)
	if err != nil {
		return nil, err
	}
	return group(entry, driverGroup), nil
}
