package resumable

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// TestInterrupted: a request that another one has interrupted reports that the upload has another
// offset, not the error of its reader. Its client may then continue.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		u := s.create(t, Record{Owner: owner, Length: 3})
		earlier, later := s.find(t, u), s.find(t, u)
		reader, writer := io.Pipe()
		reading := make(chan struct{})
		silent := body(0, io.MultiReader(begun{reading}, reader))
		silent.Interrupt = func() { writer.CloseWithError(errCut) }
		ended := make(chan error)
		go func() { ended <- earlier.Append(t.Context(), silent) }()
		<-reading
		if err := later.Append(t.Context(), body(0, strings.NewReader("123"))); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, ErrOffset) {
			t.Errorf("the interrupted request: %v", err)
		}
	})
}

// begun is an empty reader that closes a channel.
type begun struct{ reading chan struct{} }

func (b begun) Read([]byte) (int, error) {
	close(b.reading)
	return 0, io.EOF
}
