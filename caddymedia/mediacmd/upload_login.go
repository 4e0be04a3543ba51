package mediacmd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// currentToken returns the token of this run, the kept token of an earlier run, or a new one.
func (c *uploadClient) currentToken(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token == "" {
		c.token = c.tokens.read(c.now())
	}
	if c.token != "" {
		return c.token, nil
	}
	return c.newToken(ctx)
}

// renew returns a token to replace one that the service rejected. If another upload has already
// renewed it, renew returns that token.
func (c *uploadClient) renew(ctx context.Context, old string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token != old {
		return c.token, nil
	}
	return c.newToken(ctx)
}

// newToken logs in. It does not repeat a refused login, because the service limits failed logins.
func (c *uploadClient) newToken(ctx context.Context) (string, error) {
	if c.refused != nil {
		return "", c.refused
	}
	token, expires, err := c.login(ctx)
	if err != nil {
		c.refused = fmt.Errorf("getting a token: %w", err)
		return "", c.refused
	}
	c.token = token
	c.tokens.write(token, expires)
	return token, nil
}

func (c *uploadClient) login(ctx context.Context) (token string, expires time.Time, err error) {
	password, err := c.password(ctx)
	if err != nil {
		return "", time.Time{}, err
	}
	form := url.Values{"api_key": {c.apiKey}, "password": {password}}.Encode()
	var answer struct {
		Token     string `json:"token"`
		ExpiresAt int64  `json:"expires_at"`
	}
	err = c.patiently(ctx, func() error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost,
			c.server.JoinPath("api/auth/generateToken").String(), strings.NewReader(form))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return c.send(r, &answer)
	})
	if err == nil && answer.Token == "" {
		err = errors.New("the answer is not that of a media service")
	}
	return answer.Token, time.Unix(answer.ExpiresAt, 0), err
}

const (
	maxTries = 5
	// maxPause is the longest pause that the client accepts from the service.
	maxPause = 2 * time.Minute
)

// patiently repeats try while the service is busy, after the pause that it asks for. Other failures
// are not repeated, because the item may have been stored.
func (c *uploadClient) patiently(ctx context.Context, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		var refused *refusedError
		if !errors.As(err, &refused) || n == maxTries {
			return err
		}
		if refused.status != http.StatusTooManyRequests && refused.status != http.StatusServiceUnavailable {
			return err
		}
		pause := c.pause(refused.retryAfter, n)
		if pause > maxPause {
			return err
		}
		if err := c.wait(ctx, pause); err != nil {
			return err
		}
	}
}

// pause returns the value of a Retry-After header (RFC 9110 section 10.2.3). Without one the pause
// doubles with each try.
func (c *uploadClient) pause(retryAfter string, try int) time.Duration {
	if seconds, err := strconv.ParseUint(retryAfter, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(retryAfter); err == nil {
		return max(0, at.Sub(c.now()))
	}
	return time.Second << (try - 1)
}
