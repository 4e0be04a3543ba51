package modules

import (
	"encoding/json"

	"github.com/caddymedia/media/storagedrivers/options"
)

type mode string

// common is embedded.
type common struct {
	Where string `json:"where" option:"address" example:"https://example.com"`
}

type inner struct {
	Key   string           `json:"key,omitempty" option:"required,secret"`
	Mode  mode             `json:"mode,omitempty" option:"words=one|two"`
	Where string           `json:"where,omitempty" option:"address" example:"https://example.com"`
	Every options.Duration `json:"every,omitempty"`
}

// box is one of named groups.
type box struct {
	Key   string `json:"key,omitempty" option:"secret"`
	Width int    `json:"width,omitempty"`
	On    *bool  `json:"on,omitempty"`
}

// config has an option of every type.
type config struct {
	Name string `json:"name,omitempty" option:"required" example:"x"`
	common
	Folder  string   `json:"folder,omitempty" option:"folder"`
	Mode    mode     `json:"mode,omitempty" option:"words=one|two"`
	Secret  string   `json:"secret,omitempty" option:"secret"`
	Secrets []string `json:"secrets,omitempty" option:"secret,repeat"`
	List    []string `json:"list,omitempty"`
	Off     bool     `json:"off,omitempty"`
	On      *bool    `json:"on,omitempty"`
	Few     int      `json:"few,omitempty"`
	Many    int64    `json:"many,omitempty"`
	Size    int64    `json:"size,omitempty" option:"size"`

	Every options.Duration `json:"every,omitempty"`
	Group *inner           `json:"group,omitempty"`
	Boxes map[string]*box  `json:"boxes,omitempty" option:"line=box"`
	Other json.RawMessage  `json:"other,omitempty"` // no option
	Not   string           `json:"-"`
}

var described = options.Of[config]()
