package mediacmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/caddymedia/media/caddymedia/internal/leaf/redact"
)

// output prints results to the standard output, and failures and progress bars to the standard
// error. Its methods are safe for concurrent use.
type output struct {
	out, err io.Writer
	json     bool // results are JSON
	quiet    bool // nothing but failures
	bars     bool // the standard error is a terminal
	redactor redact.Redactor

	mu    sync.Mutex
	above io.Writer // above the bars, while there are any
}

// withOutput completes a command: it adds the flags for the output, and calls f. The context of f
// ends at the first interrupt or SIGTERM; the second one ends the process.
func withOutput(cmd *cobra.Command, f func(ctx context.Context, o *output, args []string) error) *cobra.Command {
	var o output
	cmd.Flags().BoolVar(&o.json, "json", false, "Print results as JSON")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "Print failures only")
	cmd.MarkFlagsMutuallyExclusive("json", "quiet")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.out, o.err = cmd.OutOrStdout(), cmd.ErrOrStderr()
		o.bars = isTerminal(o.err) && !o.json && !o.quiet
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop)
		err := f(ctx, &o, args)
		switch {
		case errors.Is(err, errReported):
			cmd.SilenceErrors = true
		case err != nil && ctx.Err() != nil:
			return errInterrupted // rather than its consequence for a storage
		}
		return o.hideIn(err)
	}
	return cmd
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// sayf prints a line of a result, except with --json or --quiet.
func (o *output) sayf(format string, args ...any) {
	if !o.json && !o.quiet {
		o.print(o.out, fmt.Sprintf(format, args...))
	}
}

// failf prints a line about a failure. With --json the result must contain the failure instead.
func (o *output) failf(format string, args ...any) {
	if !o.json {
		o.print(o.err, fmt.Sprintf(format, args...))
	}
}

func (o *output) print(to io.Writer, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.above != nil && isTerminal(to) {
		to = o.above
	}
	fmt.Fprintln(to, o.shown(text))
}

// document prints a result as one line of JSON. It does nothing without --json.
func (o *output) document(value any) error {
	if !o.json {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var encoded strings.Builder
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(o.out, escaped(encoded.String()))
	return err
}

// table prints rows of cells in columns, except with --json or --quiet.
func (o *output) table(rows [][]string) error {
	if o.json || o.quiet {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	w := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, o.shown(strings.Join(row, "\t")))
	}
	return w.Flush()
}

// rows are a long table, which is printed in parts.
type rows [][]string

// maxRows is the number of rows that are printed together, with columns of the same width.
const maxRows = 1000

// add adds a row, and prints what is a part.
func (r *rows) add(o *output, row ...string) error {
	*r = append(*r, row)
	if len(*r) < maxRows {
		return nil
	}
	return r.flush(o)
}

// flush prints what is not printed.
func (r *rows) flush(o *output) error {
	part := *r
	*r = nil
	return o.table(part)
}

// text returns the redacted text of an error, or "" for nil. Error texts in a document must pass
// through text.
func (o *output) text(err error) string {
	if err == nil {
		return ""
	}
	return o.shown(err.Error())
}

// hideIn returns an error with a redacted text.
func (o *output) hideIn(err error) error {
	if err == nil || errors.Is(err, errReported) || o.text(err) == err.Error() {
		return err
	}
	return errors.New(o.text(err))
}

// shown returns text without secrets and terminal control sequences.
func (o *output) shown(text string) string { return harmless(o.redactor.Text(text)) }

// harmless replaces terminal control characters in a text of several lines. Names, certificates and
// answers of servers may contain them.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// escaped escapes the terminal control characters that the JSON encoder leaves in strings.
func escaped(document string) string {
	var b strings.Builder
	for _, r := range document {
		if r == '\n' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// bytesText returns a number of bytes for people.
func bytesText(n int64) string { return humanize.IBytes(uint64(max(0, n))) }
