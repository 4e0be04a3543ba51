package mediaapp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/fetch"
	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/naming"
)

// Downloads say from where Go code in this process may have items downloaded. The addresses
// may come from strangers: they must not reach what only this machine can reach.
type Downloads struct {
	// Networks such as `10.0.0.0/8`, or single addresses, that may be downloaded from although
	// they are not public. Default: none.
	Allow []string `json:"allow,omitempty" option:"repeat" example:"10.0.0.0/8"`
	// The ports that may be connected to. Default: `80` and `443`.
	Ports []string `json:"ports,omitempty" option:"repeat" example:"443"`
	// The most redirects that are followed, each of them checked as the first address is.
	// Default: 3.
	MaxRedirects int `json:"max_redirects,omitempty"`
	// How long a download may take as a whole. Default: `1m`.
	Timeout caddy.Duration `json:"timeout,omitempty" example:"1m"`
}

func (a *App) provisionDownloads(caddy.Context) error {
	var config Downloads
	if a.Downloads != nil {
		config = *a.Downloads
	}
	if err := downloadsOptions.Expand(&config); err != nil {
		return fmt.Errorf("downloads: %w", err)
	}
	options, err := config.options()
	if err != nil {
		return fmt.Errorf("downloads: %w", err)
	}
	a.remote = fetch.New(options)
	a.closers = append(a.closers, func() error {
		a.remote.Close()
		return nil
	})
	return nil
}

func (d *Downloads) options() (fetch.Options, error) {
	o := fetch.Options{MaxRedirects: d.MaxRedirects, Timeout: time.Duration(d.Timeout)}
	for _, text := range d.Allow {
		network, ok := parseNetwork(text)
		if !ok {
			return o, fmt.Errorf("allow: %q is neither an address nor a network such as 10.0.0.0/8", text)
		}
		o.Allow = append(o.Allow, network)
	}
	for _, text := range d.Ports {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return o, fmt.Errorf("ports: %q is no port", text)
		}
		o.Ports = append(o.Ports, uint16(port))
	}
	return o, nil
}

// parseNetwork takes nothing that would allow nothing: what is dialled has no zone, and is never an IPv4 address
// inside IPv6.
func parseNetwork(text string) (netip.Prefix, bool) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), addr.Zone() == "" && !addr.Is4In6()
	}
	network, err := netip.ParsePrefix(text)
	return network.Masked(), err == nil && !network.Addr().Is4In6()
}

func (a *App) download(ctx context.Context, address string, req ingest.Request) Result {
	return a.upload(func(app *App) ([]ingest.Item, ingest.Failures) {
		alias, ok := app.Alias(req.Kind, req.Alias)
		if !ok {
			return nil, app.uploader.Refuse(ctx, req, badRequest("unknown alias %.64q", req.Alias))
		}
		from, err := app.remote.Get(ctx, address)
		if err != nil {
			return nil, app.uploader.Refuse(ctx, req, remoteFailure(err))
		}
		defer from.Body.Close()
		name, body, failure := open(from, alias)
		if failure != nil {
			return nil, app.uploader.Refuse(ctx, req, failure)
		}
		return app.uploader.Upload(ctx, req, ingest.Single(name, body))
	})
}

// open gives what a download is called, and what reads all of it.
func open(from *fetch.Download, alias *ingest.Alias) (string, io.Reader, *ingest.Failure) {
	if from.Size > alias.MaxSize {
		return "", nil, &ingest.Failure{
			Reason: ingest.TooLarge, Message: fmt.Sprintf("larger than %d bytes", alias.MaxSize),
		}
	}
	ext := naming.Extension(from.Name)
	if alias.Extensions[ext] || ext != "" && alias.Kind == ingest.File {
		return from.Name, remoteBody{from.Body}, nil
	}
	found, whole, err := imaging.Guess(from.Body)
	if err != nil {
		return "", nil, remoteFailure(err)
	}
	name := strings.TrimRight(from.Name, ". ")
	if name == "" {
		name = alias.Kind.Name()
	}
	if found != "" {
		name += "." + found
	}
	return name, remoteBody{whole}, nil
}

// remoteFailure tells of an item that could not be downloaded.
func remoteFailure(err error) *ingest.Failure {
	f := &ingest.Failure{Reason: ingest.BadRequest, Message: "the download was broken off", Err: err}
	if known, ok := errors.AsType[*fetch.Error](err); ok {
		f.Message = known.Message
	}
	return f
}

// remoteBody maps read errors to failures.
type remoteBody struct{ io.Reader }

func (b remoteBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // only io.EOF itself is the end
		err = remoteFailure(err)
	}
	return n, err
}
