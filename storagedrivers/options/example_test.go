package options_test

import (
	"fmt"

	"github.com/caddymedia/media/storagedrivers/options"
)

// source is the Go file with the struct. A package embeds it: //go:embed config.go
const source = `package crate

// Config keeps objects on a crate.
type Config struct {
	// The name of the crate. Required.
	Label string

	// How long to wait for the crate. Default: ` + "`30s`" + `.
	Timeout options.Duration
}
`

type Config struct {
	Label   string           `json:"label,omitempty" option:"required" example:"top"`
	Timeout options.Duration `json:"timeout,omitempty"`
}

// A driver describes its options by a struct with tags and comments.
func ExampleOf() {
	schema := options.Of[Config](source)
	fmt.Println(schema.Documented().Help)
	for _, option := range schema.Documented().Options {
		fmt.Printf("%s (%s, default %q): %s\n", option.Name, option.Type, option.Default, option.Help)
	}
	fmt.Println(schema.Check(&Config{}))
	// Output:
	// Keeps objects on a crate.
	// label (text, default ""): The name of the crate.
	// timeout (duration, default "`30s`"): How long to wait for the crate.
	// label is missing
}
