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

	"github.com/caddymedia/media/caddymedia/internal/leaf/redact"
)

// TestOutput: --json and --quiet select the output.
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
			cmd.SetArgs(test.flags)
			withOutput(cmd, func(_ context.Context, o *output, _ []string) error {
				o.redactor = redact.New(secret)
				o.sayf("%d of %s", 1, secret)
				o.failf("failed with %q", secret)
				p := o.progress() // there is no terminal
				bar := p.items("items")
				bar.setTotal(2)
				bar.add(1)
				p.close()
				return errors.Join(o.table([][]string{{"a", "bb"}}),
					o.document(map[string]string{"reason": o.text(errors.New("with " + secret))}))
			})
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Error(err)
			}
			if got := strings.ReplaceAll(errs.String(), `"***"`, "***"); out.String() != test.out || got != test.err {
				t.Errorf("%q and %q, want %q and %q", out.String(), got, test.out, test.err)
			}
		})
	}
}

// TestTerminalObeysNothing: control sequences in names, certificates and answers of servers do not
// reach the terminal.
func TestTerminalObeysNothing(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b]0;owned\x07\x1b[2Jok\u009b31m\u202e\x7f\r"
	for _, flags := range [][]string{nil, {"--json"}} {
		var out, errs bytes.Buffer
		cmd := withOutput(&cobra.Command{SilenceUsage: true}, func(_ context.Context, o *output, _ []string) error {
			o.sayf("stored %s\n\tas it is", hostile)
			o.failf("failed with %s", hostile)
			if err := o.table([][]string{{hostile, "b"}}); err != nil {
				return err
			}
			if err := o.document(map[string]string{"file": hostile}); err != nil {
				return err
			}
			return &url.Error{Op: "Get", URL: "x", Err: errors.New(hostile)}
		})
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		cmd.SetArgs(flags)
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

// TestHideIn: an error without secrets is returned unchanged.
func TestHideIn(t *testing.T) {
	t.Parallel()
	o := &output{redactor: redact.New("password")}
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
