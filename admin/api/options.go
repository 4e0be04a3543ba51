package api

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/storagedrivers/options"
)

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

// Reason removes the parts of an error of Caddy, about a configuration or a driver, that mean
// nothing to an administrator.
func Reason(message string) string {
	message = strings.TrimPrefix(message, ofConfig)
	if _, after, ok := strings.Cut(message, ofApp); ok {
		message = ofProvision.ReplaceAllString(after, "")
	}
	if at := ofDriver.FindStringIndex(message); at != nil {
		message = message[:at[0]] + message[at[1]:]
	}
	return message
}

// blamedOption returns the path of the driver option that an error is about: "driver.root".
func blamedOption(driver json.RawMessage, message string) string {
	var named struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(driver, &named) // without a name there is no such module
	info, err := caddy.GetModule("media.storages." + named.Name)
	if err != nil {
		return ""
	}
	described, ok := info.New().(options.Described)
	if !ok {
		return ""
	}
	option := options.Blamed(message, described.Schema().Options)
	if option == "" {
		return ""
	}
	return "driver." + option
}
