package azblob

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Config says which container is meant and how to get at it: by ConnectionString alone, or
// by Account or Endpoint with Key or, without one, the default credentials of the machine.
type Config struct {
	Account          string
	Key              string
	ConnectionString string
	Container        string
	// Endpoint is the URL of the blob service. Empty: the account's in Azure.
	Endpoint string
	// Prefix is a folder that all keys are in, with or without a slash at its end.
	Prefix string
	// Timeout is how long the service may keep silent. 0 is 30 s.
	Timeout time.Duration
}

var containerName = regexp.MustCompile(`^(\$web|[a-z0-9]+(-[a-z0-9]+)*)$`)

// check tells what the options say together that cannot be.
func (c Config) check() error {
	if n := len(c.Container); n < 3 || n > 63 || !containerName.MatchString(c.Container) {
		return fmt.Errorf("container: %q is not 3 to 63 lower-case letters, digits and single hyphens", c.Container)
	}
	if c.ConnectionString == "" {
		return c.checkAccount()
	}
	if c.Account != "" || c.Key != "" || c.Endpoint != "" {
		return errors.New("connection_string stands alone, without account, key and endpoint")
	}
	return nil
}

// checkAccount checks what stands in for a connection string.
func (c Config) checkAccount() error {
	if c.Account == "" && c.Key != "" {
		return errors.New("key: without the account that it belongs to")
	}
	if c.Account == "" && c.Endpoint == "" {
		return errors.New("azblob storage without an account, an endpoint or a connection_string")
	}
	if strings.HasPrefix(c.Endpoint, "http:") && c.Key == "" {
		return errors.New("endpoint: the default credentials are only sent over https; give a key")
	}
	return nil
}

// folder is what all keys begin with in the container.
func (c Config) folder() string {
	if folder := strings.Trim(c.Prefix, "/"); folder != "" {
		return folder + "/"
	}
	return ""
}

// serviceURL is where the account's containers are.
func (c Config) serviceURL() string {
	if c.Endpoint != "" {
		return strings.TrimSuffix(c.Endpoint, "/")
	}
	return "https://" + c.Account + ".blob.core.windows.net"
}
