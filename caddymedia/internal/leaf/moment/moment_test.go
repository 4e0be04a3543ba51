package moment_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/moment"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 1000, time.UTC)

// at returns a time so many seconds after noon.
func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// life returns a generation that was there from one second to another. The last one of a name is
// there: it ends at 0.
func life(generation string, stored, removed float64) moment.Life {
	l := moment.Life{Generation: generation, Stored: at(stored)}
	if removed != 0 {
		l.Removed = at(removed)
	}
	return l
}

// TestStep brings a name back to 100 seconds after noon, from 200 on.
func TestStep(t *testing.T) {
	t.Parallel()
	whole := life("a", 0, 0)
	whole.Stored = at(100).Truncate(time.Second).Add(-time.Second)
	unknown := life("a", 0, 0)
	unknown.Stored = time.Time{}
	for name, tt := range map[string]struct {
		lives   []moment.Life
		expires time.Duration
		want    moment.Step
	}{
		"never there":         {nil, 0, moment.Step{Then: -1, Now: -1}},
		"still there":         {[]moment.Life{life("a", 50, 0)}, 0, moment.Step{Then: 0, Now: 0}},
		"removed":             {[]moment.Life{life("a", 50, 150)}, 0, moment.Step{Action: moment.BringBack, Then: 0, Now: -1}},
		"removed before":      {[]moment.Life{life("a", 50, 99)}, 0, moment.Step{Then: -1, Now: -1}},
		"came later":          {[]moment.Life{life("a", 150, 0)}, 0, moment.Step{Action: moment.TakeAway, Then: -1, Now: 0}},
		"came and went later": {[]moment.Life{life("a", 150, 160)}, 0, moment.Step{Then: -1, Now: -1}},
		"replaced":            {[]moment.Life{life("b", 150, 0), life("a", 50, 150)}, 0, moment.Step{Action: moment.Exchange, Then: 1, Now: 0}},
		"replaced before": {
			[]moment.Life{life("a", 50, 90), life("b", 90, 0)}, 0, moment.Step{Then: 1, Now: 1},
		},
		"replaced twice": {
			[]moment.Life{life("a", 50, 150), life("b", 150, 160), life("c", 160, 0)}, 0, moment.Step{Action: moment.Exchange, Then: 0, Now: 2},
		},
		"gone between two": {
			[]moment.Life{life("a", 50, 90), life("b", 150, 0)}, 0, moment.Step{Action: moment.TakeAway, Then: -1, Now: 1},
		},
		"stored in the same tick":   {[]moment.Life{life("a", 100.01, 0)}, 0, moment.Step{Action: moment.Doubt, Then: 0, Now: 0}},
		"stored in the same second": {[]moment.Life{whole}, 0, moment.Step{Action: moment.Doubt, Then: 0, Now: 0}},
		"of no time":                {[]moment.Life{unknown}, 0, moment.Step{Action: moment.Doubt, Then: 0, Now: 0}},
		"in the trash and there":    {[]moment.Life{life("a", 50, 90), life("a", 50, 0)}, 0, moment.Step{Then: 1, Now: 1}},
		"twice in the trash":        {[]moment.Life{life("a", 50, 90), life("a", 50, 150)}, 0, moment.Step{Action: moment.BringBack, Then: 1, Now: -1}},
		"stored since":              {[]moment.Life{life("b", 201, 0), life("a", 50, 150)}, 0, moment.Step{Then: -1, Now: 0}},
		"perhaps stored since": {
			[]moment.Life{life("b", 199.99, 0), life("a", 50, 150)}, 0, moment.Step{Action: moment.Exchange, Then: 1, Now: 0, IsRecent: true},
		},
		"perhaps came since":     {[]moment.Life{life("b", 199.99, 0)}, 0, moment.Step{Action: moment.Doubt, Then: -1, Now: 0, IsRecent: true}},
		"ended":                  {[]moment.Life{life("a", 50, 150)}, 40 * time.Second, moment.Step{Then: -1, Now: -1}},
		"ended since":            {[]moment.Life{life("a", 50, 170)}, 100 * time.Second, moment.Step{Action: moment.BringBack, Then: 0, Now: -1}},
		"ended since, and there": {[]moment.Life{life("a", 50, 0)}, 100 * time.Second, moment.Step{Action: moment.Doubt, Then: 0, Now: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := moment.Moment{At: at(100), Began: at(200), Expires: tt.expires}
			got := m.Step(tt.lives)
			if name == "stored since" {
				got.Then = -1 // it does not matter
			}
			if got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestStepsOfHistories: of a name that is stored, replaced and removed at random times, what was
// there at any moment is found, or in doubt within the resolution of the storage.
func TestStepsOfHistories(t *testing.T) {
	t.Parallel()
	for name, dates := range map[string]func(time.Time) time.Time{
		"exact":         func(at time.Time) time.Time { return at },
		"whole seconds": func(at time.Time) time.Time { return at.Truncate(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(1000) {
				checkHistory(t, rand.New(rand.NewPCG(seed, 1)), dates)
			}
		})
	}
}

// checkHistory plays a history of a name, and looks at each of its moments. Each generation that
// follows another one within a second gets the second after it from a storage with whole seconds.
func checkHistory(t *testing.T, random *rand.Rand, dates func(time.Time) time.Time) {
	t.Helper()
	type truth struct{ from, to time.Time }
	number, now := 1+random.IntN(6), at(0)
	pause := []time.Duration{6 * time.Second, 300 * time.Millisecond}[random.IntN(2)]
	lives, truths := make([]moment.Life, 0, number), make([]truth, 0, number)
	for i := range number {
		now = now.Add(time.Duration(random.Int64N(int64(pause))))
		stored := dates(now)
		if n := len(lives); n > 0 && stored.Nanosecond() == 0 && !stored.After(lives[n-1].Stored) {
			stored = lives[n-1].Stored.Add(time.Second)
		}
		lives = append(lives, moment.Life{Generation: fmt.Sprint(i), Stored: stored})
		truths = append(truths, truth{from: now})
		now = now.Add(time.Duration(1 + random.Int64N(int64(pause))))
		lives[i].Removed, truths[i].to = now, now
	}
	isThere := random.IntN(2) == 0
	if last := len(lives) - 1; isThere {
		lives[last].Removed, truths[last].to = time.Time{}, time.Time{}
	}
	m := moment.Moment{Began: now.Add(time.Minute)}
	for m.At = at(-3); m.At.Before(m.Began); m.At = m.At.Add(97 * time.Millisecond) {
		want, near := -1, false
		for i, life := range truths {
			near = near || m.At.Sub(life.from).Abs() < 2*moment.Resolution || m.At.Sub(lives[i].Stored).Abs() < 2*moment.Resolution
			if !life.from.After(m.At) && (life.to.IsZero() || life.to.After(m.At)) {
				want = i
			}
		}
		order := random.Perm(len(lives))
		shuffled := make([]moment.Life, len(lives))
		for i, from := range order {
			shuffled[i] = lives[from]
		}
		step := m.Step(shuffled)
		got := step.Then
		if got >= 0 {
			got = order[got]
		}
		switch {
		case step.Action == moment.Doubt && !near:
			t.Fatalf("doubt at %v of %+v", m.At, lives)
		case step.Action != moment.Doubt && got != want:
			t.Fatalf("at %v there was %d, want %d of %+v", m.At, got, want, lives)
		}
	}
}
