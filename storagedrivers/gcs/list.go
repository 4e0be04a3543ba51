package gcs

import (
	"cmp"
	"context"
	"slices"
	"strings"

	gcsdk "cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"github.com/caddymedia/media/storagedrivers"
)

// maxPage is the most names of a response of the service.
const maxPage = 1000

// listed are the attributes that an Info needs.
var listed = []string{"Name", "Size", "Generation", "Created"}

// page is one response to a request for a listing, sorted by name in byte order.
type page struct {
	found []*gcsdk.ObjectAttrs
	more  bool
}

// nameOf returns the name of an object or folder with all folders above it.
func nameOf(attrs *gcsdk.ObjectAttrs) string { return cmp.Or(attrs.Prefix, attrs.Name) }

// list returns the names of the listing from the cursor on, at least limit of them if there are so
// many.
func (d *driver) list(ctx context.Context, opts storagedrivers.ListOptions, limit int) (page, error) {
	client, err := d.connect(ctx)
	if err != nil {
		return page{}, err
	}
	query := &gcsdk.Query{
		Prefix: d.prefix + opts.Prefix, StartOffset: opts.Cursor, Projection: gcsdk.ProjectionNoACL,
	}
	if opts.Shallow {
		query.Delimiter = "/"
	}
	if err := query.SetAttrSelection(listed); err != nil {
		return page{}, err
	}
	var p page
	next, err := iterator.NewPager(client.bucket.Objects(ctx, query), limit, "").NextPage(&p.found)
	if err != nil {
		return page{}, err
	}
	for _, attrs := range p.found {
		if nameOf(attrs) == "" {
			return page{}, cloudStorage.Foreign("a listing with an entry without a name")
		}
	}
	p.more = next != ""
	slices.SortFunc(p.found, func(a, b *gcsdk.ObjectAttrs) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return p, nil
}

// List returns one page of objects. The cursor is the last name of the previous page, which the
// service lists again. Therefore List requests one name more than the limit, unless that needs a
// second request.
func (d *driver) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	limit := opts.PageLimit()
	p, err := d.list(ctx, opts, min(limit+1, maxPage))
	if err != nil {
		return storagedrivers.Page{}, mapError(ctx, err)
	}
	if len(p.found) > 0 && nameOf(p.found[0]) == opts.Cursor {
		p.found = p.found[1:]
	}
	if len(p.found) > limit {
		p.found, p.more = p.found[:limit], true
	}
	var result storagedrivers.Page
	for _, attrs := range p.found {
		key, folder := strings.CutSuffix(strings.TrimPrefix(nameOf(attrs), d.prefix), "/")
		switch {
		case storagedrivers.ValidKey(key) != nil:
		case attrs.Prefix != "":
			result.Folders = append(result.Folders, key+"/")
		case !folder:
			result.Objects = append(result.Objects, d.newInfo(attrs))
		}
	}
	if p.more {
		result.Next = nameOf(p.found[len(p.found)-1])
	}
	return result, nil
}
