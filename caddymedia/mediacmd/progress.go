package mediacmd

import (
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress holds the progress bars of a running command. It does nothing if bars are not shown.
type progress struct {
	out       *output
	container *mpb.Progress
	bars      []*mpb.Bar
}

// progress starts progress bars on the standard error. Until close, other lines are printed above
// them.
func (o *output) progress() *progress {
	p := &progress{out: o}
	if !o.bars {
		return p
	}
	p.container = mpb.New(mpb.WithOutput(o.err))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.above = p.container
	return p
}

// close removes the bars.
func (p *progress) close() {
	if p.container == nil {
		return
	}
	p.out.mu.Lock()
	p.out.above = nil
	p.out.mu.Unlock()
	for _, b := range p.bars {
		b.Abort(true)
	}
	p.container.Wait()
}

// items adds a bar that counts items.
func (p *progress) items(name string) *bar {
	return p.add(name, decor.CountersNoUnit("%d of %d"), decor.CurrentNoUnit("%d"), decor.AverageSpeed(0, "%.0f/s"))
}

// bytes adds a bar that counts bytes.
func (p *progress) bytes(name string) *bar {
	start := time.Now() //nolint:forbidigo // a bar shows the time of its command
	return p.add(name,
		decor.Any(func(s decor.Statistics) string { return bytesText(s.Current) + " of " + bytesText(s.Total) }),
		decor.Any(func(s decor.Statistics) string { return bytesText(s.Current) }),
		decor.Any(func(s decor.Statistics) string {
			return bytesText(int64(float64(s.Current)/time.Since(start).Seconds())) + "/s"
		}))
}

// add adds a bar. It shows count until the total is known, and counters from then on.
func (p *progress) add(name string, counters, count, rate decor.Decorator) *bar {
	b := new(bar)
	if p.container == nil {
		return b
	}
	left := decor.AverageETA(decor.ET_STYLE_GO)
	b.bar = p.container.AddBar(0,
		mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR), decor.Any(func(s decor.Statistics) string {
			if b.known.Load() {
				return textOf(counters, s)
			}
			return textOf(count, s)
		})),
		mpb.AppendDecorators(rate, decor.Any(func(s decor.Statistics) string {
			if b.known.Load() {
				return ", " + textOf(left, s) + " left"
			}
			return ""
		})))
	p.bars = append(p.bars, b.bar)
	return b
}

func textOf(d decor.Decorator, s decor.Statistics) string {
	text, _ := d.Decor(s)
	return text
}

// bar is a bar of [progress]. Its methods are safe for concurrent use.
type bar struct {
	bar   *mpb.Bar // nil where it is not seen
	known atomic.Bool
}

// setTotal sets the total once it is known.
func (b *bar) setTotal(n int64) {
	if b.bar != nil {
		b.bar.SetTotal(n, false)
		b.known.Store(true)
	}
}

// add adds n, which may be negative, to the count.
func (b *bar) add(n int64) {
	if b.bar != nil {
		b.bar.IncrInt64(n)
	}
}
