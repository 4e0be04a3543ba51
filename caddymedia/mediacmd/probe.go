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
		Short: "Test storages and checks, and show the guarantees of storages",
		Long: `Test all storages of the configuration, or the named ones. The command stores a
small object in each, reads, replaces and removes it, and shows the guarantees
of the storage.

Without names it also tests the checks of all aliases: each program is asked about
a plain text, and about EICAR, the harmless test file of virus scanners.

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
	var checks []probedCheck
	if len(names) == 0 {
		checks = s.probeChecks(ctx)
	}
	return s.showProbes(results, checks)
}

// probedCheck is the result of probing a check of an alias.
type probedCheck struct {
	Alias string       `json:"alias"`
	Name  string       `json:"name"`
	OK    bool         `json:"ok"`
	Steps []probedStep `json:"steps"`
}

// probeChecks asks the programs of all aliases.
func (s *session) probeChecks(ctx context.Context) (all []probedCheck) {
	for _, alias := range s.App.Service().Aliases() {
		for _, c := range alias.Checks {
			report := c.Probe(ctx)
			all = append(all, probedCheck{fullName(alias), c.Name, report.OK(), s.steps(report, alias.Storage)})
		}
	}
	return all
}

// steps returns the steps of a report in words. Failures of a network are the same for a storage
// and for other programs.
func (s *session) steps(report storagedrivers.Report, storage *storagedrivers.Storage) []probedStep {
	steps := make([]probedStep, len(report.Steps))
	for i, step := range report.Steps {
		steps[i] = probedStep{
			Name: step.Name, Title: step.Title, OK: step.Err == nil,
			TookMS: float64(step.Took.Microseconds()) / 1000, Error: s.text(step.Err), Note: step.Note,
		}
		if step.Err != nil {
			steps[i].Reason = storage.Explain(step.Err)
		}
	}
	return steps
}

func (s *session) probe(ctx context.Context, storage *storagedrivers.Storage) probed {
	report := s.App.Service().Probe(ctx, storage)
	features := storage.Features() // some are known only now
	return probed{
		Name: storage.Name(), Driver: s.App.Driver(storage.Name()).Name(), OK: report.OK(), Steps: s.steps(report, storage),
		Features: probedFeatures{features.Create.String(), features.Replace.String(), features.Together == storagedrivers.Atomic},
	}
}

// showProbes prints the results. It returns errReported if a storage or a check failed.
func (s *session) showProbes(storages []probed, checks []probedCheck) error {
	ok := true
	for _, p := range storages {
		ok = ok && p.OK
		if err := s.showProbe(p); err != nil {
			return err
		}
	}
	for _, p := range checks {
		ok = ok && p.OK
		if err := s.showSteps(p.Name, "check of "+p.Alias, p.OK, p.Steps); err != nil {
			return err
		}
	}
	err := s.document(struct {
		OK       bool          `json:"ok"`
		Storages []probed      `json:"storages"`
		Checks   []probedCheck `json:"checks,omitempty"`
	}{ok, storages, checks})
	if err == nil && !ok {
		err = errReported
	}
	return err
}

func (s *session) showProbe(p probed) error {
	if err := s.showSteps(p.Name, p.Driver, p.OK, p.Steps); err != nil || !p.OK {
		return err
	}
	s.sayf("  creates a name once: %s; replaces at once: %s; changes several names together: %s",
		p.Features.Create, p.Features.Replace, map[bool]string{true: "yes", false: "no"}[p.Features.Restore])
	return nil
}

// showSteps prints the steps of what was probed.
func (s *session) showSteps(name, what string, ok bool, steps []probedStep) error {
	verdict := "can be used"
	if !ok {
		verdict = "CANNOT be used"
	}
	s.sayf("%s (%s) %s", name, what, verdict)
	rows := make([][]string, 0, len(steps))
	for _, step := range steps {
		took := time.Duration(step.TookMS * float64(time.Millisecond)).Round(10 * time.Microsecond)
		rows = append(rows, []string{"  " + result(step.OK), took.String(), step.Title})
	}
	if err := s.table(rows); err != nil {
		return err
	}
	for _, step := range steps {
		if step.Note != "" {
			s.sayf("  note: %s", step.Note)
		}
		if !step.OK {
			s.failf("%s: %s: %s", name, step.Title, strings.TrimPrefix(step.Reason+"\n  "+step.Error, "\n  "))
		}
	}
	return nil
}

func result(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAILED"
}
