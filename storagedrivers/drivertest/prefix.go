package drivertest

import (
	"context"
	"io"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
)

// behind returns a driver that adds prefix to all keys. It is a Stager, Grouper or Appender if d is
// one.
func behind(d storagedrivers.Driver, prefix string) storagedrivers.Driver {
	if prefix == "" {
		return d
	}
	p := prefixed{d, prefix}
	appender, appends := d.(storagedrivers.Appender)
	if grouper, ok := d.(storagedrivers.Grouper); ok {
		g := prefixedGrouper{prefixedStager{p, grouper}, grouper}
		if appends {
			return struct {
				prefixedGrouper
				prefixedAppender
			}{g, prefixedAppender{appender, p}}
		}
		return g
	}
	if stager, ok := d.(storagedrivers.Stager); ok {
		return prefixedStager{p, stager}
	}
	return p
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

func (p prefixed) Delete(ctx context.Context, key string) error {
	return p.Driver.Delete(ctx, p.prefix+key)
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
	staged, err := p.stager.Stage(ctx)
	if err != nil {
		return nil, err
	}
	return prefixedStaged{staged, p.prefixed}, nil
}

type prefixedStaged struct {
	storagedrivers.Staged
	prefixed prefixed
}

func (s prefixedStaged) Commit(
	ctx context.Context, key string, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	info, err := s.Staged.Commit(ctx, s.prefixed.prefix+key, opts)
	return s.prefixed.strip(info), err
}

type prefixedGrouper struct {
	prefixedStager
	grouper storagedrivers.Grouper
}

func (p prefixedGrouper) Group() storagedrivers.Group {
	return prefixedGroup{p.grouper.Group(), p.prefix}
}

type prefixedGroup struct {
	storagedrivers.Group
	prefix string
}

func (g prefixedGroup) Plan(
	ctx context.Context, member storagedrivers.Staged, key string, opts storagedrivers.PutOptions,
) error {
	if member, ok := member.(prefixedStaged); ok {
		return g.Group.Plan(ctx, member.Staged, g.prefix+key, opts)
	}
	return g.Group.Plan(ctx, member, g.prefix+key, opts)
}

func (g prefixedGroup) PlanRemove(ctx context.Context, key string) error {
	return g.Group.PlanRemove(ctx, g.prefix+key)
}

func (g prefixedGroup) Remove(ctx context.Context, key string) error {
	return g.Group.Remove(ctx, g.prefix+key)
}

// prefixedAppender has only the methods of an Appender.
type prefixedAppender struct {
	appender storagedrivers.Appender
	driver   prefixed
}

func (p prefixedAppender) Append(ctx context.Context, key string, size int64) (storagedrivers.Appended, error) {
	w, err := p.appender.Append(ctx, p.driver.prefix+key, size)
	if err != nil {
		return nil, err
	}
	return prefixedAppended{w, p.driver}, nil
}

type prefixedAppended struct {
	storagedrivers.Appended
	driver prefixed
}

func (p prefixedAppended) Adopt(ctx context.Context) (storagedrivers.Staged, error) {
	staged, err := p.Appended.Adopt(ctx)
	if err != nil {
		return nil, err
	}
	return prefixedStaged{staged, p.driver}, nil
}
