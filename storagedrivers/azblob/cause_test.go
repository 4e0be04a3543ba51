package azblob

import (
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
)

func TestCauses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		code   string
		want   storagedrivers.Cause
	}{
		{403, "AuthenticationFailed", "The service refused the login: the account or its key is wrong."},
		{404, "ContainerNotFound", "The container does not exist. Create it, or correct its name."},
		{403, "AuthorizationPermissionMismatch", ""},
		{404, "BlobNotFound", ""},
	} {
		drivertest.Cause(t, mapError(t.Context(), replied(tt.status, tt.code)), tt.want)
	}
}
