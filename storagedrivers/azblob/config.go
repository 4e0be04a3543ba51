package azblob

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	azsdk "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
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

// open gives the container and what signs addresses in it, which is nil where nothing can.
func (c Config) open(client *http.Client, now func() time.Time) (*container.Client, signer, error) {
	// The SDK repeats nothing by itself: Storage repeats whole operations, and a request
	// whose outcome is unknown must not be sent again before somebody has looked.
	options := azcore.ClientOptions{Transport: client, Retry: policy.RetryOptions{MaxRetries: -1}}
	place := c.serviceURL() + "/" + c.Container
	switch {
	case c.ConnectionString != "":
		opened, err := container.NewClientFromConnectionString(
			c.ConnectionString, c.Container, &container.ClientOptions{ClientOptions: options})
		if err != nil {
			return nil, nil, fmt.Errorf("connection_string: %w", err)
		}
		key, err := keyOf(c.ConnectionString)
		return opened, key, err
	case c.Key != "":
		key, err := azsdk.NewSharedKeyCredential(c.Account, c.Key)
		if err != nil {
			return nil, nil, fmt.Errorf("key: %w", err)
		}
		opened, err := container.NewClientWithSharedKeyCredential(
			place, key, &container.ClientOptions{ClientOptions: options})
		return opened, sharedKey(key), err
	}
	token, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{
		ClientOptions: azcore.ClientOptions{Transport: client},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("default credentials: %w", err)
	}
	account, err := service.NewClient(c.serviceURL(), token, &service.ClientOptions{ClientOptions: options})
	if err != nil {
		return nil, nil, err
	}
	keys := &delegation{account: account, now: now}
	return account.NewContainerClient(c.Container), keys.sign, nil
}

// keyOf gives what signs with the account key of a connection string that the SDK has
// taken already; nil where it holds a shared access signature instead.
func keyOf(connectionString string) (signer, error) {
	values := map[string]string{}
	for part := range strings.SplitSeq(connectionString, ";") {
		name, value, _ := strings.Cut(part, "=")
		values[name] = value
	}
	if values["AccountName"] == "" || values["AccountKey"] == "" {
		return nil, nil //nolint:nilnil // none is no failure
	}
	key, err := azsdk.NewSharedKeyCredential(values["AccountName"], values["AccountKey"])
	if err != nil {
		return nil, fmt.Errorf("connection_string: %w", err)
	}
	return sharedKey(key), nil
}
