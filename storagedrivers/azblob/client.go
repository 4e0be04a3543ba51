package azblob

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	azsdk "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/caddymedia/media/storagedrivers/internal/genuine"
)

// open returns the container, and the signer of addresses in it, which is nil if none can be
// signed.
func (c Config) open(transport *http.Transport, now func() time.Time) (*container.Client, signer, error) {
	// The SDK retries nothing: Storage retries whole operations, and a request with an unknown
	// outcome must not be sent again before the object is looked up.
	client := &http.Client{Transport: azure.Transport(transport)}
	options := azcore.ClientOptions{Transport: client, Retry: policy.RetryOptions{MaxRetries: -1}}
	address := c.serviceURL() + "/" + c.Container
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
			address, key, &container.ClientOptions{ClientOptions: options})
		return opened, sharedKey(key), err
	}
	token, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{
		ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: transport}},
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

// azure recognizes the replies of the service by its own headers, which all have, and a listing by
// its content as well.
var azure = genuine.Service{Name: "Azure Blob Storage", Sent: func(response *http.Response) (bool, error) {
	if !genuine.HasHeader(response, "X-Ms-") {
		return false, nil
	}
	if response.Request.URL.Query().Get("comp") == "list" {
		return genuine.IsXML(response, "EnumerationResults")
	}
	return true, nil
}}

// keyOf returns a signer with the account key of a connection string that the SDK has accepted. It
// is nil if the string contains a shared access signature instead.
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
