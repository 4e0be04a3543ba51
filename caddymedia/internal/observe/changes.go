package observe

import (
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddymedia/media/caddymedia/internal/item"
)

// Change is a requested change of items, as in the audit log.
type Change struct {
	Time time.Time
	// Action is "store", "replace", "delete", "move", "copy" or "terminate".
	Action string
	Kind   item.Kind
	Alias  string
	// Filename of the item, or of the one that was moved or copied. It is empty for a set.
	Filename string
	// ToAlias and To are the alias and the filename of a moved or copied item; otherwise empty.
	ToAlias, To string
	// Size of the item in bytes; -1 if it is not known.
	Size int64
	// IsSet means that a set of items was deleted: Number of them, in Folder, or by their names if that
	// is empty.
	IsSet  bool
	Folder string
	Number int
	Actor  item.Actor
	// Result is "ok", or why the change, or a part of it, was not made.
	Result string
}

// fields returns the fields of the line in the audit log. more are fields that only some lines have.
func (c *Change) fields(more ...zap.Field) []zap.Field {
	fields := append(make([]zap.Field, 0, 12), zap.String("action", c.Action), zap.String("kind", string(c.Kind)), zap.String("alias", c.Alias))
	if c.IsSet {
		fields = append(fields, zap.String("folder", c.Folder), zap.Int("number", c.Number))
	} else {
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
	// maxChanges is the number of changes that are kept in memory, and maxText the largest of their
	// texts in bytes, as long as a key.
	maxChanges = 200
	maxText    = 1024
)

// Changes are the last changes of items in this process. A nil one keeps none.
type Changes struct {
	now   func() time.Time
	since time.Time

	mu   sync.Mutex
	kept []Change // a ring
	next int      // the index of the oldest one, once it is full
}

// changes of the process: a reload keeps them.
var changes = newChanges(time.Now) //nolint:forbidigo // the clock's one default

func newChanges(now func() time.Time) *Changes { return &Changes{now: now, since: now()} }

// add keeps a change that was made. A large request must not stay in memory for one of its texts, so
// they are copied.
func (c *Changes) add(change Change) {
	if c == nil {
		return
	}
	for _, text := range []*string{
		&change.Alias, &change.Filename, &change.ToAlias, &change.To, &change.Folder, &change.Actor.Account, &change.Actor.User,
		&change.Result,
	} {
		*text = strings.Clone((*text)[:min(len(*text), maxText)])
	}
	change.Actor.Client = "" // it is for the audit log alone
	c.mu.Lock()
	defer c.mu.Unlock()
	change.Time = c.now()
	if len(c.kept) < maxChanges {
		c.kept = append(c.kept, change)
		return
	}
	c.kept[c.next] = change
	c.next = (c.next + 1) % maxChanges
}

// Last returns the last changes, the newest first, and the time since which changes are kept.
func (c *Changes) Last() (last []Change, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last = make([]Change, len(c.kept))
	for i := range c.kept {
		last[i] = c.kept[(c.next+len(c.kept)-1-i)%len(c.kept)]
	}
	return last, c.since
}

// Changes returns the last changes of items in this process, also those under earlier configurations.
func (o *Observer) Changes() *Changes { return o.changes }
