package integration

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

// command is a `caddy media` command in the home of a Caddy, which need not run.
type command struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err bytes.Buffer
	ended    chan error
	peak     int64 // the largest observed memory in bytes; 0 if the system does not report it
}

// commandReply is the result of a command.
type commandReply struct {
	code     int
	out, err string
}

// media runs a command to its end.
func (c *child) media(args ...string) commandReply {
	c.t.Helper()
	return c.begin(args...).wait()
}

// begin starts a command.
func (c *child) begin(args ...string) *command {
	c.t.Helper()
	run := c.prepare(args...)
	run.start()
	return run
}

// prepare returns a command that has not been started.
func (c *child) prepare(args ...string) *command {
	c.t.Helper()
	binary := os.Getenv("MEDIA_TEST_CADDY")
	if binary == "" {
		var err error
		if binary, err = os.Executable(); err != nil {
			c.t.Fatal(err)
		}
	}
	run := &command{t: c.t, ended: make(chan error, 1)}
	run.cmd = exec.Command(binary, append([]string{"media"}, args...)...)
	run.cmd.Env = append(os.Environ(), c.env...)
	run.cmd.Dir = c.home
	run.cmd.Stdout, run.cmd.Stderr = &run.out, &run.err
	return run
}

func (r *command) start() {
	r.t.Helper()
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() { r.ended <- r.cmd.Wait() }()
}

// wait waits for the command to end.
func (r *command) wait() commandReply {
	r.t.Helper()
	for {
		select {
		case err := <-r.ended:
			if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
				r.t.Fatal(err)
			}
			return commandReply{r.cmd.ProcessState.ExitCode(), r.out.String(), r.err.String()}
		case <-time.After(5 * time.Millisecond):
			r.measure()
		}
	}
}

// await waits until the condition holds, or the command has ended.
func (r *command) await(condition func() bool) {
	r.t.Helper()
	for {
		select {
		case err := <-r.ended:
			r.ended <- err // for wait
			return
		case <-time.After(5 * time.Millisecond):
		}
		r.measure()
		if condition() {
			return
		}
	}
}

// killWhen kills the command as soon as the condition holds. It returns false if the command ended
// before.
func (r *command) killWhen(condition func() bool) bool {
	r.t.Helper()
	r.await(condition)
	if err := r.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		r.t.Fatal(err)
	}
	<-r.ended
	return r.cmd.ProcessState.ExitCode() < 0 // negative if killed
}

// measure records the peak memory of the command so far.
func (r *command) measure() {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	if err != nil {
		return // it has ended, or this is another system
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			r.peak = max(r.peak, kilobytes<<10)
		}
	}
}

// write writes the configuration to a file and returns its name, for a command.
func (c *child) write(media string) string {
	c.t.Helper()
	path := filepath.Join(c.home, "Caddyfile")
	if err := os.WriteFile(path, []byte(c.caddyfile(media)), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// must expects a command to succeed.
func (r commandReply) must(t *testing.T) commandReply {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", r.code, r.out, r.err)
	}
	return r
}
