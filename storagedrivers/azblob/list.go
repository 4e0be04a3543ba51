package azblob

import (
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/caddymedia/media/storagedrivers"
)

// List gives one page of objects. The cursor is the service's own.
func (d *Driver) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	options := &container.ListBlobsFlatOptions{
		Prefix:     new(d.folder + opts.Prefix),
		MaxResults: new(int32(opts.PageLimit())),
	}
	if opts.Cursor != "" {
		options.Marker = &opts.Cursor
	}
	reply, err := d.container.NewListBlobsFlatPager(options).NextPage(ctx)
	if err != nil {
		return storagedrivers.Page{}, failed(ctx, err)
	}
	page := storagedrivers.Page{Next: value(reply.NextMarker)}
	for _, item := range reply.Segment.BlobItems {
		key := strings.TrimPrefix(value(item.Name), d.folder)
		if storagedrivers.ValidKey(key) != nil || item.Properties == nil {
			continue
		}
		about := info(key, value(item.Properties.ContentLength), quoted(item.Properties.ETag), item.Properties.LastModified)
		page.Objects = append(page.Objects, about)
	}
	return page, nil
}

// quoted gives an ETag of a listing, which lacks the quotes, as headers have it.
func quoted(etag *azcore.ETag) *azcore.ETag {
	return new(azcore.ETag(`"` + strings.Trim(string(value(etag)), `"`) + `"`))
}
