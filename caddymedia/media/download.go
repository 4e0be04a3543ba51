package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/fetch"
	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/internal/bytesize"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/caddymedia/upload"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Downloads limit the downloads of Go code in this process. Their addresses may come from strangers,
// and must not reach hosts that only this machine can reach.
type Downloads struct {
	// Private networks such as `10.0.0.0/8`, or single addresses, that downloads may connect to.
	// Default: none.
	Allow []string `json:"allow,omitempty" option:"repeat" example:"10.0.0.0/8"`
	// The ports that downloads may connect to. Default: `80` and `443`.
	Ports []string `json:"ports,omitempty" option:"repeat" example:"443"`
	// The most redirects of a download. Each address is checked like the first. Default: 3.
	MaxRedirects int `json:"max_redirects,omitempty"`
	// The most time for a whole download. Default: `1m`.
	Timeout options.Duration `json:"timeout,omitempty" example:"1m"`
}

// Check implements options.Checker.
func (d *Downloads) Check() error {
	_, err := d.parse()
	return err
}

// parse returns the options of the client.
func (d *Downloads) parse() (fetch.Options, error) {
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

// parseNetwork parses a network or an address. It rejects forms that could never match a dialed
// address: addresses with a zone, and IPv4 addresses inside IPv6.
func parseNetwork(text string) (netip.Prefix, bool) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), addr.Zone() == "" && !addr.Is4In6()
	}
	network, err := netip.ParsePrefix(text)
	return network.Masked(), err == nil && !network.Addr().Is4In6()
}

// DownloadImage downloads an image and stores it like an upload to the alias, with the same checks
// and the same name. address is an http or https address and may be untrusted: only public hosts
// are connected to, and those allowed by the options of downloads, whose limits hold too. An empty
// alias is "content". An empty subFolder is that of the storage; "/" is the root of the alias.
//
// The name is that of the server (Content-Disposition), else the last segment of the address. A
// name without the extension of an image gets that of its content; the media type of the server is
// ignored. The download is cancelled with ctx.
func (s *Service) DownloadImage(ctx context.Context, address, alias, subFolder string) Result {
	return s.download(ctx, address, s.request(ctx, aliases.Image, alias, subFolder))
}

// DownloadFile is [Service.DownloadImage] for a file alias. Only a name without any extension gets
// that of its content.
func (s *Service) DownloadFile(ctx context.Context, address, alias, subFolder string) Result {
	return s.download(ctx, address, s.request(ctx, aliases.File, alias, subFolder))
}

func (s *Service) download(ctx context.Context, address string, req upload.Request) Result {
	return s.upload(func() ([]upload.Item, aliases.Failures) {
		alias, ok := s.Alias(req.Kind, req.Alias)
		if !ok {
			return nil, s.uploader.Refuse(ctx, req, badRequest("unknown alias %.64q", req.Alias))
		}
		from, err := s.remote.Get(ctx, address)
		if err != nil {
			return nil, s.uploader.Refuse(ctx, req, remoteFailure(err))
		}
		defer from.Body.Close()
		name, body, failure := open(from, alias)
		if failure != nil {
			return nil, s.uploader.Refuse(ctx, req, failure)
		}
		return s.uploader.Upload(ctx, req, upload.Single(name, body))
	})
}

// open returns the name of a download and a reader of all its bytes.
func open(from *fetch.Download, alias *aliases.Alias) (string, io.Reader, *aliases.Failure) {
	if from.Size > alias.MaxSize {
		return "", nil, &aliases.Failure{
			Reason: aliases.TooLarge, Message: "larger than " + bytesize.Format(alias.MaxSize),
		}
	}
	ext := naming.Extension(from.Name)
	if alias.Extensions[ext] || ext != "" && alias.Kind == aliases.File {
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

// remoteFailure returns the failure of an item that could not be downloaded.
func remoteFailure(err error) *aliases.Failure {
	f := &aliases.Failure{Reason: aliases.BadRequest, Message: "the download failed", Err: err}
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
