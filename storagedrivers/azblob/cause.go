package azblob

import (
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/caddymedia/media/storagedrivers"
)

// causes of the errors of the service, by their codes.
var causes = map[bloberror.Code]storagedrivers.Cause{
	bloberror.AuthenticationFailed: "The service refused the login: the account or its key is wrong.",
	bloberror.ContainerNotFound:    storagedrivers.Missing("container"),
}
