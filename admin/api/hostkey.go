package api

import (
	"errors"
	"net/http"

	"github.com/caddymedia/media/caddymedia/mediaapp"
)

// hostKeyAnswer is the key that a host presents. It is not trusted yet.
type hostKeyAnswer struct {
	HostKey     string `json:"host_key"`
	Fingerprint string `json:"fingerprint"`
}

// hostKey asks the host of the storage in the body of the request for its key, as a probe would
// connect to it.
func (c *call) hostKey() error {
	driver, err := c.driverInBody()
	if err != nil {
		return err
	}
	return c.probing(func() error {
		ctx, cancel := c.bounded()
		defer cancel()
		key, description, err := mediaapp.HostKey(ctx, driver)
		if errors.Is(err, mediaapp.ErrNoHostKey) {
			return failf(http.StatusBadRequest, "Hosts of this driver have no key.")
		}
		if err != nil {
			return failf(http.StatusBadGateway, "%s", explain(description, err))
		}
		return c.answer(hostKeyAnswer{HostKey: key.Key, Fingerprint: key.Fingerprint})
	})
}
