package observe

import (
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// Change is a requested change of items, or a change of the configuration, as in the audit log.
type Change struct {
	Time time.Time
	// Action is "store", "replace", "delete", "move", "copy" or "terminate", or "add", "change" or
	// "remove" for the configuration.
	Action string
	// Section and Name are those of an entry of the configuration: "image alias" and "content".
	// Options are the names of those that were changed, separated by commas. They are empty for items.
	Section, Name, Options string
	Kind                   item.Kind
	Alias                  string
	// Filename of the item, or of the one that was moved or copied. It is empty for a set.
	Filename string
	// ToAlias and To are the alias and the filename of a moved or copied item; otherwise empty.
	ToAlias, To string
	// Size of the item in bytes; -1 if it is not known.
	Size int64
	// IsSet means that a set of items was deleted: Number of them, in Folder, or by their names if
	// that is empty.
	IsSet  bool
	Folder string
	Number int
	Actor  item.Actor
	// Result is "ok", or why the change, or a part of it, was not made.
	Result string
}

// fields returns the fields of the line in the audit log. more are fields that only some lines
// have.
func (c *Change) fields(more ...zap.Field) []zap.Field {
	fields := append(make([]zap.Field, 0, 12), zap.String("action", c.Action))
	if c.Section != "" {
		fields = append(fields, zap.String("section", c.Section), zap.String("name", c.Name), zap.String("options", c.Options))
	} else {
		fields = append(fields, zap.String("kind", string(c.Kind)), zap.String("alias", c.Alias))
	}
	switch {
	case c.IsSet:
		fields = append(fields, zap.String("folder", c.Folder), zap.Int("number", c.Number))
	case c.Section == "":
		fields = append(fields, zap.String("filename", c.Filename))
	}
	if c.ToAlias != "" || c.To != "" {
		fields = append(fields, zap.String("to_alias", c.ToAlias), zap.String("to", c.To))
	}
	fields = append(fields, more...)
	fields = append(fields, zap.String("via", string(c.Actor.Origin)), zap.String("account", c.Actor.Account))
	if c.Actor.User != "" {
		fields = append(fields, zap.String("user", c.Actor.User))
	}
	return append(fields, zap.String("client", c.Actor.Client), zap.String("result", c.Result))
}

const (
	// maxChanges is the number of changes of items that are kept in memory, and of the configuration,
	// and maxText the largest of their texts in bytes, as long as a key.
	maxChanges = 200
	maxText    = 1024
)

// Changes are the last changes in this process. A nil one keeps none.
type Changes struct {
	now   func() time.Time
	since time.Time

	mu sync.Mutex
	// Many items must not push out who changed the configuration.
	items, configuration ring
}

// ring has the last maxChanges changes.
type ring struct {
	kept []Change
	next int // the index of the oldest one, once it is full
}

func (r *ring) add(change Change) {
	if len(r.kept) < maxChanges {
		r.kept = append(r.kept, change)
		return
	}
	r.kept[r.next] = change
	r.next = (r.next + 1) % maxChanges
}

// last returns the changes, the newest first.
func (r *ring) last() []Change {
	last := make([]Change, len(r.kept))
	for i := range r.kept {
		last[i] = r.kept[(r.next+len(r.kept)-1-i)%len(r.kept)]
	}
	return last
}

// changes of the process: a reload keeps them.
var changes = newChanges(time.Now) //nolint:forbidigo // the clock's one default

func newChanges(now func() time.Time) *Changes { return &Changes{now: now, since: now()} }

// add keeps a change that was made. A large request must not stay in memory for one of its texts,
// so they are copied.
func (c *Changes) add(change Change) {
	if c == nil {
		return
	}
	for _, text := range []*string{
		&change.Alias, &change.Filename, &change.ToAlias, &change.To, &change.Folder, &change.Actor.Account, &change.Actor.User,
		&change.Result, &change.Options,
	} {
		*text = strings.Clone((*text)[:min(len(*text), maxText)])
	}
	change.Actor.Client = "" // it is for the audit log alone
	c.mu.Lock()
	defer c.mu.Unlock()
	change.Time = c.now()
	if change.Section != "" {
		c.configuration.add(change)
	} else {
		c.items.add(change)
	}
}

// Last returns the last changes, the newest first, and the time since which changes are kept.
func (c *Changes) Last() (last []Change, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last = append(c.configuration.last(), c.items.last()...)
	slices.SortStableFunc(last, func(a, b Change) int { return b.Time.Compare(a.Time) })
	return last, c.since
}

// Changes returns the last changes in this process, also those under earlier configurations.
func (o *Observer) Changes() *Changes { return o.changes }
