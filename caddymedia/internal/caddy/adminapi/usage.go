package adminapi

import (
	"maps"
	"slices"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// countAnswer is a number of objects and their bytes.
type countAnswer struct {
	Objects int64 `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

// aliasUsage is what an alias holds by its last count.
type aliasUsage struct {
	Kind       item.Kind   `json:"kind"`
	Name       string      `json:"name"`
	Items      countAnswer `json:"items"`
	Variants   countAnswer `json:"variants"`
	Renditions countAnswer `json:"renditions"`
	Trash      countAnswer `json:"trash"`
	// AtLeast means that a bound ended the count.
	AtLeast bool `json:"at_least"`
	// Counted is null before the first count.
	Counted *string `json:"counted"`
	// State is "idle", "waiting" or "counting"; SoFar is the number of objects of the running count.
	State string `json:"state"`
	SoFar int64  `json:"so_far"`
	// Message and Detail are why the last attempt to count failed; empty if it did not.
	Message string `json:"message"`
	Detail  string `json:"detail"`
}

// storageUsage is what the aliases of a storage hold, and the space of its backend.
type storageUsage struct {
	Name string `json:"name"`
	driverAnswer
	// Free and Total are null if the backend does not report them.
	Free  *int64 `json:"free"`
	Total *int64 `json:"total"`
	// Unfinished are the unfinished resumable uploads.
	Unfinished countAnswer  `json:"unfinished"`
	Aliases    []aliasUsage `json:"aliases"`
}

type usageAnswer struct {
	// Counting means that objects are being counted.
	Counting bool           `json:"counting"`
	Storages []storageUsage `json:"storages"`
}

// BackgroundHeader marks requests of pages that refresh by themselves. They do not count as
// activity of the user.
const BackgroundHeader = "Media-Background"

// usage returns what is known about the use of the storages. Unless a page refreshes itself,
// aliases without a recent count are counted in the background.
func (c *call) usage() error {
	if c.r.Header.Get(BackgroundHeader) == "" {
		c.service.CountUsages(false)
	}
	return c.answerUsage()
}

// countUsage counts the objects of all aliases again, in the background.
func (c *call) countUsage() error {
	c.service.CountUsages(true)
	return c.answerUsage()
}

func (c *call) answerUsage() error {
	health, byAlias, usages := c.service.Health(), c.service.Aliases(), c.service.Usages()
	answer := usageAnswer{Storages: make([]storageUsage, 0, len(health))}
	for _, name := range slices.Sorted(maps.Keys(health)) {
		storage, _ := c.service.Storage(name)
		s := storageUsage{
			Name: name, driverAnswer: describeDriver(c.app.Driver(name)), Unfinished: countAnswer(c.service.Unfinished(storage)),
			Aliases: []aliasUsage{},
		}
		if space := health[name].Space; space.Total > 0 {
			s.Free, s.Total = &space.Free, &space.Total
		}
		for i, alias := range byAlias {
			if alias.Storage.Name() == name {
				s.Aliases = append(s.Aliases, c.describeUsage(alias, &usages[i]))
				answer.Counting = answer.Counting || usages[i].Counting || usages[i].Waiting
			}
		}
		answer.Storages = append(answer.Storages, s)
	}
	return c.answer(answer)
}

func (c *call) describeUsage(alias *item.Alias, u *service.Usage) aliasUsage {
	described := aliasUsage{
		Kind: alias.Kind, Name: alias.Name, Items: countAnswer(u.Items), Variants: countAnswer(u.Variants),
		Renditions: countAnswer(u.Renditions), Trash: countAnswer(u.Trash), AtLeast: u.AtLeast, State: "idle", SoFar: u.SoFar,
	}
	if !u.Counted.IsZero() {
		described.Counted = new(stamp(u.Counted))
	}
	switch {
	case u.Counting:
		described.State = "counting"
	case u.Waiting:
		described.State = "waiting"
	}
	if u.Err != nil {
		described.Message = explain(c.app.Driver(alias.Storage.Name()).Describe(), u.Err)
		described.Detail = c.redacted(u.Err.Error())
	}
	return described
}

// changeAnswer is a change of items or of the configuration that was made.
type changeAnswer struct {
	Time   string `json:"time"`
	Action string `json:"action"`
	// Section and Name are those of an entry of the configuration, and Options the names of those that
	// were changed. They are empty for items, and the fields of items are empty for them.
	Section string    `json:"section,omitempty"`
	Name    string    `json:"name,omitempty"`
	Options string    `json:"options,omitempty"`
	Kind    item.Kind `json:"kind"`
	Alias   string    `json:"alias"`
	// Filename is empty for a set.
	Filename string `json:"filename"`
	// ToAlias and To are those of a move or copy.
	ToAlias string `json:"to_alias,omitempty"`
	To      string `json:"to,omitempty"`
	// Size is null if it is not known.
	Size *int64 `json:"size"`
	// Number of the items of a set that was deleted, in Folder, or by their names if that is empty.
	Number int    `json:"number,omitempty"`
	Folder string `json:"folder,omitempty"`
	// Origin, Account and User are whose change it is.
	Origin  string `json:"origin"`
	Account string `json:"account"`
	User    string `json:"user,omitempty"`
	// Result is "ok", or why a part of a set is left.
	Result string `json:"result"`
}

// changes returns the last changes in this process, the newest first. The addresses of clients
// are in the audit log alone.
func (c *call) changes() error {
	last, since := c.app.Changes()
	answer := struct {
		Since   string         `json:"since"`
		Changes []changeAnswer `json:"changes"`
	}{stamp(since), make([]changeAnswer, len(last))}
	for i := range last {
		answer.Changes[i] = describeChange(&last[i])
	}
	return c.answer(answer)
}

func describeChange(change *plugin.Change) changeAnswer {
	described := changeAnswer{
		Time: stamp(change.Time), Action: change.Action, Section: change.Section, Name: change.Name, Options: change.Options, Kind: change.Kind, Alias: change.Alias, Filename: change.Filename,
		ToAlias: change.ToAlias, To: change.To, Number: change.Number, Folder: change.Folder,
		Origin: string(change.Actor.Origin), Account: change.Actor.Account, User: change.Actor.User, Result: change.Result,
	}
	if change.Size >= 0 {
		described.Size = &change.Size
	}
	return described
}
