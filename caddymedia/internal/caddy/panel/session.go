package panel

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
)

// session describes the visitor and the panel for the pages.
type session struct {
	User   string `json:"user"`
	Editor bool   `json:"editor"`
	// ItemsOnly means that the pages show items and nothing else.
	ItemsOnly bool `json:"items_only,omitempty"`
	// May are the rights to items. All users may list them.
	May []access.Right `json:"may"`
	// LogOut reports whether the panel has the session, so that it can be ended.
	LogOut bool `json:"log_out"`
	// WhyNot is the reason why nothing can be changed, empty if there is none.
	WhyNot string `json:"why_not"`
	// Lasting reports whether changes outlive a restart. If not, LastingNote has the way to keep
	// them.
	Lasting     bool   `json:"lasting"`
	LastingNote string `json:"lasting_note"`
	// PublicPassword names the accounts and users with the password of Caddyfile.example, and what to
	// do. Empty for none.
	PublicPassword string `json:"public_password"`
	// StartedFrom is the file that Caddy was started with, if that is known.
	StartedFrom string `json:"started_from"`
}

const (
	notResumed = "Caddy was started without `--resume`: changes made here are lost at a restart and at `caddy reload`. " +
		"Start it with `caddy run --resume`, in `ExecStart` of its unit for instance, " +
		"or copy the running configuration into the configuration file."
	notSaved = "Caddy does not save the running configuration: changes made here are lost at a restart and at `caddy reload`. " +
		"Check that `persist_config` is not off and that Caddy may write its folder for configurations, " +
		"or copy the running configuration into the configuration file."
)

func (p *Panel) session(ctx context.Context, v visitor) session {
	s := session{User: v.name, Editor: v.editor, ItemsOnly: v.itemsOnly, May: v.account.AllRights(), LogOut: p.login != nil}
	if v.itemsOnly {
		s.Lasting = true // what they change does
		return s
	}
	s.StartedFrom, s.PublicPassword = valueOf(p.args, "--config", "-c"), p.publicNote
	running, err := p.api.Running(ctx)
	var why string
	if err != nil {
		why = err.Error()
	}
	switch {
	case !v.editor:
		s.WhyNot = onlyLooking
	case why != "":
		s.WhyNot = why
	}
	switch {
	case !resumed(p.args):
		s.LastingNote = notResumed
	case why != "":
		s.LastingNote = why
	case !autosaved(running):
		s.LastingNote = notSaved
	default:
		s.Lasting = true
	}
	return s
}

// publicNote returns the note that accounts and users of the panel have the password of
// Caddyfile.example, empty for none.
func publicNote(accounts, users []string) string {
	var who []string
	for _, logins := range []struct {
		noun  string
		names []string
	}{{"account", accounts}, {"panel user", users}} {
		for _, name := range logins.names {
			who = append(who, logins.noun+" `"+name+"`")
		}
	}
	if len(who) == 0 {
		return ""
	}
	return "It is in the documentation: " + strings.Join(who, ", ") + ". " +
		"Replace it: `caddy media account <name>` prints another one, with its hash and the line for the Caddyfile."
}

// resumed reports whether Caddy starts with the last running configuration.
func resumed(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--resume" || arg == "-r" || arg == "--resume=true"
	})
}

// valueOf returns the value of a flag, or "" if it is not given.
func valueOf(args []string, names ...string) string {
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case !slices.Contains(names, name):
		case joined:
			return value
		case i+1 < len(args):
			return args[i+1]
		}
	}
	return ""
}

// autosaved reports whether Caddy saves its configuration and has saved the running one of the app.
func autosaved(running map[string]any) bool {
	saved, err := os.ReadFile(caddy.ConfigAutosavePath)
	if err != nil {
		return false
	}
	var config struct {
		Admin struct {
			Config struct {
				Persist *bool `json:"persist"`
			} `json:"config"`
		} `json:"admin"`
		Apps struct {
			Media map[string]any `json:"media"`
		} `json:"apps"`
	}
	d := json.NewDecoder(bytes.NewReader(saved))
	d.UseNumber()
	if err := d.Decode(&config); err != nil {
		return false
	}
	persists := config.Admin.Config.Persist == nil || *config.Admin.Config.Persist
	return persists && (len(running)+len(config.Apps.Media) == 0 || reflect.DeepEqual(running, config.Apps.Media))
}
