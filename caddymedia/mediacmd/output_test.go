package mediacmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
)

// TestOutput: what is for people, for programs and for nobody.
func TestOutput(t *testing.T) {
	t.Parallel()
	const secret = "a secret/with \"signs\""
	for name, test := range map[string]struct {
		flags    []string
		out, err string
	}{
		"plain":   {nil, "1 of ***\na  bb\n", "failed with ***\n"},
		"--quiet": {[]string{"--quiet"}, "", "failed with ***\n"},
		"--json":  {[]string{"--json"}, "{\"reason\":\"with ***\"}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			cmd := &cobra.Command{}
			cmd.SetOut(&out)
			cmd.SetErr(&errs)
			addOutputFlags(cmd)
			if err := cmd.ParseFlags(test.flags); err != nil {
				t.Fatal(err)
			}
			o := newOutput(cmd)
			o.secrets = []string{secret}
			o.sayf("%d of %s", 1, secret)
			if err := o.table([][]string{{"a", "bb"}}); err != nil {
				t.Error(err)
			}
			o.failf("failed with %q", secret)
			p := o.progress() // there is no terminal
			bar := p.items("items")
			bar.setTotal(2)
			bar.add(1)
			p.close()
			err := o.document(map[string]string{"reason": o.reason(errors.New("with " + secret))})
			if err != nil {
				t.Error(err)
			}
			if got := strings.ReplaceAll(errs.String(), `"***"`, "***"); out.String() != test.out || got != test.err {
				t.Errorf("%q and %q, want %q and %q", out.String(), got, test.out, test.err)
			}
		})
	}
}

// Names, certificates and answers of servers are shown, but the terminal obeys none of them.
func TestTerminalObeysNothing(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b]0;owned\x07\x1b[2Jok\u009b31m\u202e\x7f\r"
	for _, flags := range [][]string{nil, {"--json"}} {
		var out, errs bytes.Buffer
		cmd := &cobra.Command{SilenceUsage: true, RunE: run(func(_ context.Context, cmd *cobra.Command, _ []string) error {
			o := newOutput(cmd)
			o.sayf("stored %s\n\tas it is", hostile)
			o.failf("failed with %s", hostile)
			if err := o.table([][]string{{hostile, "b"}}); err != nil {
				return err
			}
			if err := o.document(map[string]string{"file": hostile}); err != nil {
				return err
			}
			return &url.Error{Op: "Get", URL: "x", Err: errors.New(hostile)}
		})}
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		cmd.SetArgs(flags)
		addOutputFlags(cmd)
		if err := cmd.ExecuteContext(t.Context()); err == nil {
			t.Error("no error")
		}
		for _, text := range []string{out.String(), errs.String()} {
			if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%v: %q", flags, text)
			}
		}
		if flags == nil {
			if !strings.Contains(out.String(), "stored ?]0;owned??[2Jok?31m???\n\tas it is\n") {
				t.Errorf("%q", out.String())
			}
			continue
		}
		var document map[string]string
		if err := json.Unmarshal(out.Bytes(), &document); err != nil || document["file"] != hostile {
			t.Errorf("%v: %q of %s", err, document["file"], out.String())
		}
	}
}

// TestHideIn keeps an error that shows nothing as it is.
func TestHideIn(t *testing.T) {
	t.Parallel()
	o := &output{secrets: []string{"password"}}
	cause := errors.New("harmless")
	if err := o.hideIn(fmt.Errorf("it is %w", cause)); !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	if err := o.hideIn(errors.New("the password is wrong")); err.Error() != "the *** is wrong" {
		t.Errorf("%v", err)
	}
	if o.hideIn(nil) != nil || !errors.Is(o.hideIn(errReported), errReported) {
		t.Error("nothing is something else now")
	}
}

// TestHideSecrets finds secrets as libraries write them.
func TestHideSecrets(t *testing.T) {
	t.Parallel()
	key := "-----BEGIN KEY-----\nMC4CAQAwBQYDK2VwBCIEIA\n-----END KEY-----\n"
	for name, test := range map[string]struct{ secret, text, want string }{
		"itself":      {"p&ss word", "user:p&ss word@host", "user:***@host"},
		"in quotes":   {`p"ss\`, `"p\"ss\\"`, `"***"`},
		"in a query":  {"p&ss word", "?key=p%26ss+word", "?key=***"},
		"in a path":   {"p&ss word/", "/p&ss%20word%2F", "/***"},
		"trimmed":     {"password\n", "of password.", "of ***."},
		"of a key":    {key, "bad MC4CAQAwBQYDK2VwBCIEIA", "bad ***"},
		"by chance":   {"a", "all is well", "all is well"},
		"none":        {"", "all is well", "all is well"},
		"other words": {"password", "pass the word", "pass the word"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := hideSecrets(test.text, []string{test.secret}); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
