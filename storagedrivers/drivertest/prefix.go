package drivertest

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
)

// behind returns a driver that adds prefix to all keys. It is a Stager or Appender if d is one.
func behind(d storagedrivers.Driver, prefix string) storagedrivers.Driver {
	if prefix == "" {
		return d
	}
	p := prefixed{d, prefix}
	stager, ok := d.(storagedrivers.Stager)
	if !ok {
		return p
	}
	staging := prefixedStager{p, stager}
	if appender, ok := d.(storagedrivers.Appender); ok {
		return struct {
			prefixedStager
			prefixedAppender
		}{staging, prefixedAppender{appender, p}}
	}
	return staging
}

type prefixed struct {
	storagedrivers.Driver
	prefix string
}

func (p prefixed) strip(info storagedrivers.Info) storagedrivers.Info {
	info.Key = strings.TrimPrefix(info.Key, p.prefix)
	return info
}

func (p prefixed) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	if opts.Source != nil {
		source := *opts.Source
		source.Key = p.prefix + source.Key
		opts.Source = &source
	}
	info, err := p.Driver.Put(ctx, p.prefix+key, r, opts)
	return p.strip(info), err
}

func (p prefixed) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := p.Driver.Open(ctx, p.prefix+key, rng)
	return body, p.strip(info), err
}

func (p prefixed) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	info, err := p.Driver.Stat(ctx, p.prefix+key)
	return p.strip(info), err
}

func (p prefixed) Delete(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error {
	return p.Driver.Delete(ctx, p.prefix+key, opts)
}

func (p prefixed) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	opts.Prefix = p.prefix + opts.Prefix
	page, err := p.Driver.List(ctx, opts)
	for i, info := range page.Objects {
		page.Objects[i] = p.strip(info)
	}
	for i, folder := range page.Folders {
		page.Folders[i] = strings.TrimPrefix(folder, p.prefix)
	}
	return page, err
}

type prefixedStager struct {
	prefixed
	stager storagedrivers.Stager
}

func (p prefixedStager) Stage(ctx context.Context) (storagedrivers.Staged, error) {
	return p.stager.Stage(ctx)
}

func (p prefixedStager) StageCopy(ctx context.Context, source storagedrivers.Info) (storagedrivers.Staged, error) {
	source.Key = p.prefix + source.Key
	return p.stager.StageCopy(ctx, source)
}

func (p prefixedStager) Commit(ctx context.Context, changes []storagedrivers.Change) ([]storagedrivers.Info, error) {
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Key = p.prefix + changes[i].Key
	}
	infos, err := p.stager.Commit(ctx, changes)
	for i, info := range infos {
		infos[i] = p.strip(info)
	}
	return infos, err
}

// prefixedAppender has only the methods of an Appender.
type prefixedAppender struct {
	appender storagedrivers.Appender
	driver   prefixed
}

func (p prefixedAppender) Append(ctx context.Context, key string, size int64) (storagedrivers.Appended, error) {
	return p.appender.Append(ctx, p.driver.prefix+key, size)
}
