package media

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/check"
	"github.com/caddymedia/media/storagedrivers/options"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// Check is another program that is asked about each file before it is stored, whatever way it came.
// It gets the bytes that would be stored, never a part of them. Variants and renditions are not
// sent, and what is moved within its alias is not sent again.
type Check struct {
	// The address of clamd, the daemon of ClamAV: `unix/` and the path of its socket, or its host and
	// port. A file with malware is refused. `clamd` or `http` is required.
	Clamd string `json:"clamd,omitempty" example:"unix//run/clamav/clamd.ctl"`

	// The address of a program that gets each file by a `POST`. A status of 200 to 299 accepts the
	// file, and one of 400 to 499 refuses it, with the first line of a plain text for the caller. Any
	// other answer, also a redirect, counts as none. `clamd` or `http` is required.
	HTTP string `json:"http,omitempty" option:"address" example:"http://127.0.0.1:9000/judge"`

	// A header that the program of `http` gets too, as its name and its value.
	Header []string `json:"header,omitempty" option:"secret,repeat,joined"`

	// How long an answer may take, the wait for a turn included. Default: `1m`.
	Timeout options.Duration `json:"timeout,omitempty"`

	// The largest file that is sent. `clamd` has a limit of its own, the `StreamMaxLength` of its
	// configuration: what is larger than that counts as larger too. Default: `25MiB`.
	MaxSize int64 `json:"max_size,omitempty" option:"size"`

	// What becomes of a larger file: `refuse` refuses it, `pass` stores it without this check.
	// Default: `refuse`.
	Larger string `json:"larger,omitempty" option:"words=refuse|pass"`

	// What becomes of a file for which there is no answer: `refuse` asks the caller to try again
	// later, `pass` stores it without this check. Default: `refuse`.
	IfUnavailable string `json:"if_unavailable,omitempty" option:"words=refuse|pass"`

	// How many files are sent at a time. Others wait for their turn, each account in its own line.
	// Default: `4`.
	Jobs int `json:"jobs,omitempty"`
}

// passFile is the word of Larger and IfUnavailable that stores a file.
const passFile = "pass"

// Defaults of a check.
const (
	defaultCheckTimeout = time.Minute
	defaultCheckSize    = 25 << 20
	defaultCheckJobs    = 4
)

// Check implements options.Checker.
func (c *Check) Check() error {
	if c.Clamd == "" && c.HTTP == "" {
		return nil // it may be a placeholder
	}
	_, err := c.program()
	return err
}

// program returns the program that is asked.
func (c *Check) program() (check.Program, error) {
	switch {
	case (c.Clamd == "") == (c.HTTP == ""):
		return nil, errors.New("clamd or http is required, and not both")
	case c.HTTP == "" && len(c.Header) > 0:
		return nil, errors.New("header is for http")
	case c.HTTP == "":
		program, err := check.NewClamd(c.Clamd)
		if err != nil {
			return nil, fmt.Errorf("clamd: %w", err)
		}
		return program, nil
	}
	program, err := check.NewHTTP(c.HTTP, c.Header)
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	return program, nil
}

// checks returns the checks sorted by name.
func (o *AliasOptions) checks() ([]*check.Check, error) {
	all, programs := make([]*check.Check, 0, len(o.Checks)), map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(o.Checks)) {
		c := o.Checks[name]
		program, err := c.program()
		if err == nil {
			err = Names.Check(name)
		}
		address := cmp.Or(c.Clamd, c.HTTP)
		if other := programs[address]; err == nil && other != "" {
			err = fmt.Errorf("it asks the same program as the check %s", other)
		}
		if err != nil {
			return nil, fmt.Errorf("checks.%s: %w", name, err)
		}
		programs[address] = name
		all = append(all, &check.Check{
			Name: name, Program: program, Timeout: cmp.Or(time.Duration(c.Timeout), defaultCheckTimeout),
			MaxSize: cmp.Or(c.MaxSize, defaultCheckSize), PassesLarger: c.Larger == passFile, PassesUnanswered: c.IfUnavailable == passFile,
			Turns: queue.New(queue.Options{Slots: cmp.Or(c.Jobs, defaultCheckJobs)}),
		})
	}
	return all, nil
}
