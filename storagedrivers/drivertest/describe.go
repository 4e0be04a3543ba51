package drivertest

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"log/slog"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Description describes the tests of a driver's description. Configurations are represented by
// their options in JSON.
type Description struct {
	// New returns a complete configuration, for example [NewConfig] of its type.
	New func(t *testing.T, options string) storagedrivers.Config
	// Options are the options of the described configuration.
	Options string
	// Where is the expected short form of the backend.
	Where string
	// Same configurations store their objects in the same location as Options. They differ in
	// credentials, time-outs and other settings, or in the spelling of the backend.
	Same []string
	// Below configurations store their objects in the folder "below/it" of those of Options.
	Below []string
	// Apart configurations store their objects on another backend, or beside those of Options.
	Apart []string
	// Refused, Missing and Unreachable are configurations that fail: the login is refused, there is no
	// such bucket or the root is a file, no server listens at the address. Empty ones are not
	// tested.
	Refused, Missing, Unreachable string
	// NotSecret are the options whose names only sound secret.
	NotSecret []string
}

// NewConfig returns a complete configuration of a driver with options in JSON.
func NewConfig[C any, P interface {
	*C
	storagedrivers.Config
}](t *testing.T, options string) storagedrivers.Config {
	t.Helper()
	c := P(new(C))
	test.Must(t, json.Unmarshal([]byte(options), c), options)
	test.Must(t, c.Complete(), options)
	return c
}

// Describe tests the description of a driver, and the causes of its errors.
func Describe(t *testing.T, d Description) {
	t.Helper()
	config := d.New(t, d.Options)
	got := written(t, config, d.Options).Describe()
	if got.Title == "" || got.Noun == "" || got.Icon == "" || got.Noun != strings.ToLower(got.Noun) || got.Where != d.Where {
		t.Errorf("description %+v, want it of %q", got, d.Where)
	}
	if limited, ok := config.(storagedrivers.Limited); ok && (limited.Limits().Parallel < 0 || limited.Limits().Timeout < 0) {
		t.Errorf("limits %+v", limited.Limits())
	}
	described, ok := config.(options.Described)
	if !ok {
		t.Fatal("it does not describe its options")
	}
	d.checkOptions(t, described.Schema())
	d.checkLocations(t, config.Location())
	d.checkFailures(t, got.Noun)
}

// written returns a configuration of the type of complete with options that are not complete.
func written(t *testing.T, complete storagedrivers.Config, options string) storagedrivers.Config {
	t.Helper()
	c := reflect.New(reflect.TypeOf(complete).Elem()).Interface().(storagedrivers.Config) // the type of one
	test.Must(t, json.Unmarshal([]byte(options), c), options)
	return c
}

func (d Description) checkLocations(t *testing.T, location storagedrivers.Location) {
	t.Helper()
	if location.Backend == "" || location != location.Join("") {
		t.Errorf("location %+v", location)
	}
	for _, options := range d.Same {
		if got := d.New(t, options).Location(); got != location {
			t.Errorf("%s: location %+v, want %+v", options, got, location)
		}
	}
	for _, options := range d.Below {
		if got, want := d.New(t, options).Location(), location.Join("below/it"); got != want {
			t.Errorf("%s: location %+v, want %+v", options, got, want)
		}
	}
	for _, options := range d.Apart {
		if got := d.New(t, options).Location(); got.Overlaps(location) {
			t.Errorf("%s: location %+v overlaps %+v", options, got, location)
		}
	}
}

var soundsSecret = regexp.MustCompile("password|secret|key|passphrase|token|connection_string")

// checkOptions tests that a form can be made of the options: it shows the required and the common
// ones.
func (d Description) checkOptions(t *testing.T, s *options.Schema) {
	t.Helper()
	test.Is(t, s.Err(), nil)
	if !strings.HasPrefix(s.Help, "Keeps objects ") {
		t.Errorf("help %q", s.Help)
	}
	if !s.Options[0].Required || s.Options[0].Type != options.Text {
		t.Errorf("the argument after the driver is %q, which is optional", s.Options[0].Name)
	}
	for _, o := range s.Options {
		if want := soundsSecret.MatchString(o.Name) && !slices.Contains(d.NotSecret, o.Name); o.Secret != want {
			t.Errorf("%s: secret %t, want %t", o.Name, o.Secret, want)
		}
		if o.Secret && !strings.Contains(o.Help+o.Example, "{env.") {
			t.Errorf("%s: no placeholder to keep it out of the configuration", o.Name)
		}
		if o.Type == "switch" && o.Default == "" || o.Name == "timeout" && o.Default != "`30s`" {
			t.Errorf("%s: default %q", o.Name, o.Default)
		}
		if o.Required && o.Common {
			t.Errorf("%s is required, so it need not be common", o.Name)
		}
	}
}

// checkFailures tests that errors have the causes of package storagedrivers. The errors of the
// network are causes themselves.
func (d Description) checkFailures(t *testing.T, noun string) {
	t.Helper()
	if d.Refused != "" {
		err := d.check(t, d.Refused)
		if !errors.Is(err, fs.ErrPermission) || errors.Is(err, storagedrivers.ErrUnavailable) || storagedrivers.CauseOf(err) == "" {
			t.Errorf("refused: error %v with the cause %q", err, storagedrivers.CauseOf(err))
		}
	}
	if d.Missing != "" {
		err := d.check(t, d.Missing)
		cause := storagedrivers.CauseOf(err)
		if cause != storagedrivers.Missing(noun) && cause != storagedrivers.NotAFolder {
			t.Errorf("missing: error %v with the cause %q", err, cause)
		}
	}
	if d.Unreachable != "" {
		err := d.check(t, d.Unreachable)
		if !errors.Is(err, storagedrivers.ErrUnavailable) || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("unreachable: error %v", err)
		}
		Cause(t, err, "")
	}
}

// check returns the error of the Check of a new driver.
func (d Description) check(t *testing.T, options string) error {
	t.Helper()
	driver, err := d.New(t, options).NewDriver(slog.New(slog.DiscardHandler))
	test.Must(t, err, options)
	defer driver.Close()
	return driver.Check(t.Context())
}

// Cause checks the cause of an error; want is empty if it must have none.
func Cause(t *testing.T, err error, want storagedrivers.Cause) {
	t.Helper()
	if got := storagedrivers.CauseOf(err); err == nil || got != want {
		t.Errorf("error %v has the cause %q, want %q", err, got, want)
	}
}

// Waiting allows four tests at once for each processor, unless -parallel is set: tests that speak
// to a server wait most of the time. TestMain calls it before the tests run.
func Waiting() {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if set {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
}
