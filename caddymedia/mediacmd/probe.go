package mediacmd

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddymedia/media/storagedrivers"
)

func probeCommand() *cobra.Command {
	return inSession(&cobra.Command{
		Use:   "probe [<storage>...]",
		Short: "Test storages and show their guarantees",
		Long: `Test all storages of the configuration, or the named ones. The command stores a
small object in each, reads, replaces and removes it, and shows the guarantees
of the storage.

With --json the result is one document.`,
	}, probe)
}

// probed is the result of probing a storage.
type probed struct {
	Name     string         `json:"name"`
	Driver   string         `json:"driver"`
	OK       bool           `json:"ok"`
	Steps    []probedStep   `json:"steps"`
	Features probedFeatures `json:"features"`
}

type probedStep struct {
	Name   string  `json:"name"`
	Title  string  `json:"title"`
	OK     bool    `json:"ok"`
	TookMS float64 `json:"took_ms"`
	Error  string  `json:"error,omitempty"`
	Reason string  `json:"reason,omitempty"` // of the error in plain words, if it is known
	Note   string  `json:"note,omitempty"`
}

type probedFeatures struct {
	Create  string `json:"create"`
	Replace string `json:"replace"`
	Restore bool   `json:"restore"`
}

// probe runs `caddy media probe`.
func probe(ctx context.Context, s *session, names []string) error {
	storages, err := s.storages(names)
	if err != nil {
		return err
	}
	results := make([]probed, len(storages))
	var running sync.WaitGroup
	for i, storage := range storages {
		running.Go(func() { results[i] = s.probe(ctx, storage) })
	}
	running.Wait()
	return s.showProbes(results)
}

func (s *session) probe(ctx context.Context, storage *storagedrivers.Storage) probed {
	report := s.App.Service().Probe(ctx, storage)
	features := storage.Features() // some are known only now
	p := probed{
		Name: storage.Name(), Driver: s.App.Driver(storage.Name()).Name(), OK: report.OK(),
		Features: probedFeatures{features.Create.String(), features.Replace.String(), features.Together == storagedrivers.Atomic},
	}
	for _, step := range report.Steps {
		result := probedStep{
			Name: step.Name, Title: step.Title, OK: step.Err == nil,
			TookMS: float64(step.Took.Microseconds()) / 1000, Error: s.text(step.Err), Note: step.Note,
		}
		if step.Err != nil {
			result.Reason = storage.Explain(step.Err)
		}
		p.Steps = append(p.Steps, result)
	}
	return p
}

// showProbes prints the results. It returns errReported if a storage failed.
func (s *session) showProbes(results []probed) error {
	ok := true
	for _, p := range results {
		ok = ok && p.OK
		if err := s.showProbe(p); err != nil {
			return err
		}
	}
	err := s.document(struct {
		OK       bool     `json:"ok"`
		Storages []probed `json:"storages"`
	}{ok, results})
	if err == nil && !ok {
		err = errReported
	}
	return err
}

func (s *session) showProbe(p probed) error {
	verdict := "can be used"
	if !p.OK {
		verdict = "CANNOT be used"
	}
	s.sayf("%s (%s) %s", p.Name, p.Driver, verdict)
	rows := make([][]string, 0, len(p.Steps))
	for _, step := range p.Steps {
		took := time.Duration(step.TookMS * float64(time.Millisecond)).Round(10 * time.Microsecond)
		rows = append(rows, []string{"  " + result(step.OK), took.String(), step.Title})
	}
	if err := s.table(rows); err != nil {
		return err
	}
	for _, step := range p.Steps {
		if step.Note != "" {
			s.sayf("  note: %s", step.Note)
		}
		if !step.OK {
			s.failf("%s: %s: %s", p.Name, step.Title, strings.TrimPrefix(step.Reason+"\n  "+step.Error, "\n  "))
		}
	}
	if p.OK {
		s.sayf("  creates a name once: %s; replaces at once: %s; changes several names together: %s",
			p.Features.Create, p.Features.Replace, map[bool]string{true: "yes", false: "no"}[p.Features.Restore])
	}
	return nil
}

func result(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAILED"
}
