package site

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Command is a `caddy media` command in the home of a Caddy, which need not run.
type Command struct {
	t        *testing.T
	Cmd      *exec.Cmd
	Out, Err bytes.Buffer
	ended    chan error
	Peak     int64 // the largest observed memory in bytes; 0 if the system does not report it
}

// CommandReply is the result of a command.
type CommandReply struct {
	Code     int
	Out, Err string
}

// Media runs a command to its end.
func (c *Child) Media(args ...string) CommandReply {
	c.T.Helper()
	return c.Begin(args...).Wait()
}

// Begin starts a command.
func (c *Child) Begin(args ...string) *Command {
	c.T.Helper()
	run := &Command{t: c.T, Cmd: c.Program(append([]string{"media"}, args...)...), ended: make(chan error, 1)}
	run.Cmd.Stdout, run.Cmd.Stderr = &run.Out, &run.Err
	if err := run.Cmd.Start(); err != nil {
		c.T.Fatal(err)
	}
	go func() { run.ended <- run.Cmd.Wait() }()
	return run
}

// Wait waits for the command to end.
func (r *Command) Wait() CommandReply {
	r.t.Helper()
	for {
		select {
		case err := <-r.ended:
			if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
				r.t.Fatal(err)
			}
			return CommandReply{r.Cmd.ProcessState.ExitCode(), r.Out.String(), r.Err.String()}
		case <-time.After(5 * time.Millisecond):
			r.measure()
		}
	}
}

// KillWhen kills the command as soon as the condition holds. It returns false if the command ended
// before.
func (r *Command) KillWhen(condition func() bool) bool {
	r.t.Helper()
	for {
		select {
		case err := <-r.ended:
			r.ended <- err // for Wait
			return false
		case <-time.After(5 * time.Millisecond):
		}
		r.measure()
		if condition() {
			break
		}
	}
	if err := r.Cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		r.t.Fatal(err)
	}
	<-r.ended
	return r.Cmd.ProcessState.ExitCode() < 0 // negative if killed
}

// measure records the peak memory of the command so far.
func (r *Command) measure() {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.Cmd.Process.Pid))
	if err != nil {
		return // it has ended, or this is another system
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			r.Peak = max(r.Peak, kilobytes<<10)
		}
	}
}

// WriteConfig writes the configuration to a file and returns its name, for a command.
func (c *Child) WriteConfig(media string) string {
	c.T.Helper()
	path := filepath.Join(c.Home, "Caddyfile")
	if err := os.WriteFile(path, []byte(c.Caddyfile(media)), 0o600); err != nil {
		c.T.Fatal(err)
	}
	return path
}

// Must expects a command to succeed.
func (r CommandReply) Must(t *testing.T) CommandReply {
	t.Helper()
	if r.Code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", r.Code, r.Out, r.Err)
	}
	return r
}
