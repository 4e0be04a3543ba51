package check

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
	"github.com/caddymedia/media/storagedrivers"
)

// eicar is the test file by which virus scanners are tried, https://www.eicar.org. It does no harm.
// It is in two parts, so that no scanner finds it in this program.
const eicar = `X5O!P%@AP[4\PZX54(P^)7CC)7}$` + `EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*`

// maxProbe is the most bytes of the largest file of a probe, which is in memory.
const maxProbe = 25 << 20

var (
	errMissed = storagedrivers.WithCause(errors.New("the test file of virus scanners was accepted"),
		"Malware of this form is not found. Check the signatures and the limits of the scanner.")
	errLimit = storagedrivers.WithCause(ErrTooLarge,
		"The program takes no file of this size: raise its limit (StreamMaxLength of clamd), or lower max_size.")
)

const (
	causeRefusesAll storagedrivers.Cause = "The program refuses a plain text: so it would refuse everything."

	noteNoScanner = "It accepts the test file of virus scanners: it is none, or does not look there."
)

// Probe asks the program about a plain text, which it must accept, and about the test file of virus
// scanners, plain, in an archive, and at the end of the largest file. Clamd must refuse these; of
// another program a note says if it does not. After a step without an answer the rest is left out.
func (c *Check) Probe(ctx context.Context) (report storagedrivers.Report) {
	for _, tried := range []struct {
		name, title string
		content     func() ([]byte, error)
		mayAccept   bool
	}{
		{"text", "accept a plain text", func() ([]byte, error) { return []byte("a plain text\n"), nil }, true},
		{"malware", "refuse the test file of virus scanners (EICAR)", func() ([]byte, error) { return []byte(eicar), nil }, false},
		{"archive", "refuse it in an archive", func() ([]byte, error) { return archive(0) }, false},
		{"largest", "refuse it at the end of an archive of " + bytesize.Format(c.probed()), func() ([]byte, error) { return archive(c.probed()) }, false},
	} {
		start := time.Now() //nolint:forbidigo // a duration depends on no other clock
		step := storagedrivers.Step{Name: tried.name, Title: tried.title}
		content, err := tried.content()
		if err == nil {
			err = c.Of(ctx, File{
				Content: bytes.NewReader(content), Size: int64(len(content)), Kind: "file", Alias: "probe", Filename: "media-probe-" + tried.name,
				Type: "application/octet-stream",
			})
		}
		step.Note, step.Err = c.judged(tried.mayAccept, err)
		step.Took = time.Since(start)
		report.Steps = append(report.Steps, step)
		if ResultOf(err) == Unanswered {
			return report // so it would be again
		}
	}
	return report
}

// judged returns what an answer means for a step of a probe.
func (c *Check) judged(mayAccept bool, err error) (note string, failed error) {
	_, isScanner := c.Program.(*Clamd)
	switch result := ResultOf(err); {
	case result == Unanswered:
		return "", err
	case result == TooLarge:
		return "", errLimit
	case mayAccept && result == Refused:
		return "", storagedrivers.WithCause(err, causeRefusesAll)
	case mayAccept, result == Refused:
		return "", nil
	case isScanner:
		return "", errMissed
	}
	return noteNoScanner, nil
}

// probed is the size of the largest file of a probe, in bytes.
func (c *Check) probed() int64 { return min(c.MaxSize, maxProbe) }

// archive returns a ZIP archive with the test file at its end, of at most so many bytes.
func archive(size int64) ([]byte, error) {
	const overhead = 1 << 10
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	padding, err := w.CreateHeader(&zip.FileHeader{Name: "padding", Method: zip.Store})
	if err == nil {
		_, err = io.CopyN(padding, zeros{}, max(0, size-overhead))
	}
	in, failed := w.Create("eicar.com")
	if failed == nil {
		_, failed = io.WriteString(in, eicar)
	}
	if err = errors.Join(err, failed, w.Close()); err != nil {
		return nil, fmt.Errorf("making an archive: %w", err)
	}
	return out.Bytes(), nil
}

// zeros are endless.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
