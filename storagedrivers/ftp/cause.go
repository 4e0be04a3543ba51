package ftp

import (
	"strings"

	"github.com/caddymedia/media/storagedrivers"
)

const wrongLogin storagedrivers.Cause = "The host refused the login: the user or the password is wrong."

// causeOfRoot returns the cause of a root that cannot be entered. Servers report it only as text.
func causeOfRoot(err error) storagedrivers.Cause {
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "not a directory") {
		return storagedrivers.NotAFolder
	}
	return ""
}
