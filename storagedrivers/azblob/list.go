package azblob

import (
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/listing"
)

// List returns one page of objects. The cursor contains that of the service.
func (d *driver) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	page, marker := listing.Resume(opts.Cursor)
	found, err := d.list(ctx, opts, marker)
	if err != nil {
		return storagedrivers.Page{}, mapError(ctx, err)
	}
	for _, item := range found.blobs {
		if value(item.Name) == "" || item.Properties == nil {
			return storagedrivers.Page{}, azure.Foreign("a blob without a name or properties")
		}
		key := strings.TrimPrefix(*item.Name, d.folder)
		if storagedrivers.ValidKey(key) != nil {
			continue
		}
		about := newInfo(key, value(item.Properties.ContentLength), quoted(item.Properties.ETag), item.Properties.LastModified)
		page.Objects = append(page.Objects, about)
	}
	for _, item := range found.prefixes {
		if value(item.Name) == "" {
			return storagedrivers.Page{}, azure.Foreign("a folder without a name")
		}
		page.TakeFolder(strings.TrimPrefix(*item.Name, d.folder))
	}
	return page.End(found.next), nil
}

// errNoBlobs is the error of a listing without its list, which is empty for an empty container.
var errNoBlobs = azure.Foreign("a listing without blobs")

// segment is one response to a request for a listing.
type segment struct {
	blobs    []*container.BlobItem
	prefixes []*container.BlobPrefix
	next     string
}

// list requests the segment after marker, which is empty at the beginning.
func (d *driver) list(ctx context.Context, opts storagedrivers.ListOptions, marker string) (segment, error) {
	options := container.ListBlobsHierarchyOptions{
		Prefix:     new(d.folder + opts.Prefix),
		MaxResults: new(int32(opts.PageLimit())),
	}
	if marker != "" {
		options.Marker = &marker
	}
	if opts.Shallow {
		reply, err := d.container.NewListBlobsHierarchyPager("/", &options).NextPage(ctx)
		if err == nil && reply.Segment == nil {
			err = errNoBlobs
		}
		if err != nil {
			return segment{}, err
		}
		return segment{reply.Segment.BlobItems, reply.Segment.BlobPrefixes, value(reply.NextMarker)}, nil
	}
	flat := container.ListBlobsFlatOptions{Prefix: options.Prefix, MaxResults: options.MaxResults, Marker: options.Marker}
	reply, err := d.container.NewListBlobsFlatPager(&flat).NextPage(ctx)
	if err == nil && reply.Segment == nil {
		err = errNoBlobs
	}
	if err != nil {
		return segment{}, err
	}
	return segment{blobs: reply.Segment.BlobItems, next: value(reply.NextMarker)}, nil
}

// quoted returns an ETag of a listing, which lacks the quotes, as in headers.
func quoted(etag *azcore.ETag) *azcore.ETag {
	return new(azcore.ETag(`"` + strings.Trim(string(value(etag)), `"`) + `"`))
}
