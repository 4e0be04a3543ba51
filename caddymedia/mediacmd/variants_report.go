package mediacmd

import (
	"context"
	"errors"

	"github.com/dustin/go-humanize"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/storagedrivers"
)

// variantTotals is the last line of the JSON.
type variantTotals struct {
	Alias    string `json:"alias"`
	DryRun   bool   `json:"dry_run"`
	Pictures int    `json:"pictures"`
	Current  int    `json:"current"`
	// Made counts Larger as well; in a dry run both are what would be made.
	Made   int `json:"made"`
	Larger int `json:"larger"`
	// None counts pictures of which a variant or a rendition cannot be made.
	None   int `json:"none"`
	Failed int `json:"failed"`
	// Renditions counts files: a rendition may have one more as WebP.
	Renditions int `json:"renditions"`
	// Complete reports that no picture was left out; Stopped is the reason if some were.
	Complete bool   `json:"complete"`
	Stopped  string `json:"stopped,omitempty"`
}

// variantResult is a line of the JSON.
type variantResult struct {
	Filename string              `json:"filename"`
	Before   ingest.VariantState `json:"before,omitempty"`
	// Result is "made", "larger", "none" or "failed"; empty in a dry run, or if only renditions were
	// made.
	Result string `json:"result,omitempty"`
	Size   int64  `json:"size,omitempty"`
	// Renditions is the number of files of renditions that were made, or would be.
	Renditions int    `json:"renditions,omitempty"`
	Message    string `json:"message,omitempty"`
	Reason     string `json:"reason,omitempty"` // in plain words, if it is known
}

// tally updates the totals.
func (m *makingVariants) tally(done outcome, change func(*variantTotals)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.totals.Pictures++
	m.totals.Renditions += done.renditions
	change(&m.totals)
}

func (m *makingVariants) settled(filename string, done outcome) error {
	wanted := m.totals.DryRun && m.alias.WebP != nil && (m.all || done.Before != ingest.VariantCurrent)
	m.tally(done, func(t *variantTotals) {
		switch {
		case done.Result != "" || wanted:
			t.Made++
		case done.renditions == 0:
			t.Current++
		}
		if done.Result == ingest.VariantLarger {
			t.Larger++
		}
	})
	if wanted {
		m.sayf("%s: %s", filename, done.Before)
	}
	if m.totals.DryRun && done.renditions > 0 {
		m.sayf("%s: %d renditions missing", filename, done.renditions)
	}
	if done.Result == "" && !wanted && done.renditions == 0 {
		return nil
	}
	return m.document(resultOf(filename, done))
}

func resultOf(filename string, done outcome) variantResult {
	return variantResult{
		Filename: filename, Before: done.Before, Result: string(done.Result), Size: done.Size, Renditions: done.renditions,
	}
}

func (m *makingVariants) none(filename string, done outcome, err error) error {
	m.tally(done, func(t *variantTotals) { t.None++ })
	m.sayf("%s: %s", filename, m.text(err))
	result := resultOf(filename, done)
	result.Result, result.Message = string(ingest.VariantNone), m.text(err)
	return m.document(result)
}

// failed reports a picture of which something could not be made. It returns an error, which ends the
// run, if the storage cannot be reached at all.
func (m *makingVariants) failed(ctx context.Context, filename string, done outcome, err error) error {
	m.tally(done, func(t *variantTotals) { t.Failed++ })
	m.failf("%s: %v", filename, m.explain(err))
	result := resultOf(filename, done)
	result.Result, result.Message, result.Reason = "failed", m.text(err), m.reasonOf(err)
	document := m.document(result)
	if errors.Is(err, storagedrivers.ErrUnavailable) {
		return errors.Join(document, m.alias.Storage.Check(ctx))
	}
	return document
}

// report prints the totals. stopped is the error that ended the run early, or nil.
func (m *makingVariants) report(stopped error) error {
	t := &m.totals
	t.Complete, t.Stopped = stopped == nil, m.text(stopped)
	if err := m.document(t); err != nil {
		return err
	}
	verb := "made"
	if t.DryRun {
		verb = "would be made"
	}
	row := func(name string, n int) []string { return []string{name, humanize.Comma(int64(n))} }
	err := m.table([][]string{
		row("pictures", t.Pictures), row("variants "+verb, t.Made), row("of them larger than their pictures", t.Larger),
		row("renditions "+verb, t.Renditions), row("current", t.Current), row("cannot be made", t.None), row("failed", t.Failed),
	})
	switch {
	case err != nil:
		return err
	case stopped != nil:
		m.failf("Stopped: %v\nThe same command goes on from here.", m.explain(stopped))
	case t.Failed == 0:
		return nil
	}
	return errReported
}
