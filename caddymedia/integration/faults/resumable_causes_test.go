package faults_test

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// A cause of a cut.
type cause int

const (
	closed   cause = iota // by the client
	reset                 // on the way
	silenced              // on the way: nothing passes, without a reset
	killed                // the Caddy
	reloaded              // the configuration
	forgot                // Redis restarts without the tokens
	causes
)

var causeNames = [causes]string{"closed", "reset", "silenced", "killed", "reloaded", "redis"}

// demand asks for a cut; done is closed after it.
type demand struct {
	cause cause
	node  int
	done  chan struct{}
}

// cause returns a random one. Those of a process are rare, as they cut all other uploads too.
func (s *sender) cause() cause {
	c := []cause{
		closed, closed, closed, closed, reset, reset, reset, reset, silenced, silenced, silenced, silenced,
		killed, killed, reloaded, forgot,
	}[s.random.IntN(16)]
	if c == forgot && s.redis == nil || c == killed && s.noKills {
		return reset
	}
	return c
}

// trip causes a cut from within a body.
func (s *sender) trip(ctx context.Context, c cause) error {
	switch c {
	case closed:
		return errors.New("the client closes the connection")
	case reset:
		for _, proxy := range s.proxies {
			proxy.CloseAll()
		}
	default:
		d := demand{c, s.random.IntN(len(s.nodes)), make(chan struct{})}
		s.demands <- d
		if c == killed {
			select {
			case <-d.done:
			case <-ctx.Done():
			}
		}
	}
	return nil
}

// abandon sends a request on connections that become silent after the bytes of before. It returns
// while the request hangs. Silent connections of an earlier request deliver what was on the way.
func (s *sender) abandon(
	ctx context.Context, send func(ctx context.Context, body io.Reader) error, before, after []byte,
) error {
	s.speak()
	proxies := s.proxies
	silent, failed := make(chan struct{}), make(chan error, 1)
	body := io.MultiReader(bytes.NewReader(before), tripwire{func() error {
		for _, proxy := range proxies {
			proxy.SetSilent(true)
		}
		close(silent)
		return nil
	}}, bytes.NewReader(after))
	go func() { failed <- send(ctx, body) }()
	select {
	case <-silent:
	case err := <-failed:
		select {
		case <-silent: // the request failed meanwhile
		default:
			return err
		}
	}
	s.silent = proxies
	s.mu.Lock()
	s.proxies = s.newProxies()
	s.mu.Unlock()
	s.tus.HTTP.CloseIdleConnections()
	return nil
}

// speak makes silent connections deliver what was on the way.
func (s *sender) speak() {
	for _, proxy := range s.silent {
		proxy.SetSilent(false)
	}
	s.silent = nil
}

// tripwire is an empty reader that calls a function.
type tripwire struct{ trip func() error }

func (w tripwire) Read([]byte) (int, error) {
	if err := w.trip(); err != nil {
		return 0, err
	}
	return 0, io.EOF
}
