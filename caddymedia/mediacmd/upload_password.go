package mediacmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// passwordSource reads a password from a file, the environment or the terminal, in this order.
type passwordSource struct {
	file     string
	terminal *os.File
	prompt   io.Writer
	question string
	// before is called before the password is read from the terminal.
	before func()
}

// passwordVariable is the environment variable for the password.
const passwordVariable = "MEDIA_PASSWORD"

// get returns the password.
func (p *passwordSource) get(ctx context.Context) (string, error) {
	password := os.Getenv(passwordVariable)
	if p.file != "" {
		raw, err := os.ReadFile(p.file)
		if err != nil {
			return "", fmt.Errorf("reading the password: %w", err)
		}
		password = strings.TrimRight(string(raw), "\r\n")
		if password == "" {
			return "", errors.New("the password file is empty")
		}
	}
	if password != "" {
		return password, nil
	}
	if !term.IsTerminal(int(p.terminal.Fd())) {
		return "", errors.New("no password: set " + passwordVariable + " or give --password-file, this is no terminal")
	}
	return p.ask(ctx)
}

// ask reads the password from the terminal without echo. An interrupt ends it and restores the
// terminal.
func (p *passwordSource) ask(ctx context.Context) (string, error) {
	fd := int(p.terminal.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("asking for the password: %w", err)
	}
	p.before()
	fmt.Fprint(p.prompt, p.question)
	defer fmt.Fprintln(p.prompt)
	var password []byte
	answered := make(chan error, 1)
	go func() {
		var err error
		password, err = term.ReadPassword(fd)
		answered <- err
	}()
	select {
	case <-ctx.Done():
		return "", errors.Join(context.Cause(ctx), term.Restore(fd, state))
	case err = <-answered:
	}
	if err == nil && len(password) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return "", fmt.Errorf("asking for the password: %w", err)
	}
	return string(password), nil
}
