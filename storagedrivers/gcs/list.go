package gcs

import (
	"context"
	"strings"

	gcsdk "cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"github.com/caddymedia/media/storagedrivers"
)

// listed are the attributes that an Info is made of.
var listed = []string{"Name", "Size", "Generation", "Created"}

// page is a part of what the service lists.
type page struct {
	objects []*gcsdk.ObjectAttrs
	next    string
}

// list gives at most limit objects whose names begin with prefix, from the cursor on, in
// the byte order of their names.
func (d *Driver) list(ctx context.Context, prefix, cursor string, limit int) (page, error) {
	client, err := d.connect(ctx)
	if err != nil {
		return page{}, err
	}
	query := &gcsdk.Query{Prefix: prefix, Projection: gcsdk.ProjectionNoACL}
	if err := query.SetAttrSelection(listed); err != nil {
		return page{}, err
	}
	var p page
	p.next, err = iterator.NewPager(client.bucket.Objects(ctx, query), limit, cursor).NextPage(&p.objects)
	return p, err
}

// List gives one page of objects; the cursor is the service's.
func (d *Driver) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	found, err := d.list(ctx, d.prefix+opts.Prefix, opts.Cursor, opts.PageLimit())
	if err != nil {
		return storagedrivers.Page{}, mapError(ctx, err)
	}
	result := storagedrivers.Page{Next: found.next}
	for _, attrs := range found.objects {
		if storagedrivers.ValidKey(strings.TrimPrefix(attrs.Name, d.prefix)) == nil {
			result.Objects = append(result.Objects, d.info(attrs))
		}
	}
	return result, nil
}
