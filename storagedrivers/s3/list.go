package s3

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/listing"
)

// List returns one page of objects. The cursor contains that of the service.
func (d *driver) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	page, token := listing.Resume(opts.Cursor)
	input := &awss3.ListObjectsV2Input{
		Bucket: &d.bucket, Prefix: d.name(opts.Prefix),
		ContinuationToken: optional(token),
		MaxKeys:           aws.Int32(int32(opts.PageLimit())),
		EncodingType:      types.EncodingTypeUrl, // XML cannot name everything that foreign keys hold
	}
	if opts.Shallow {
		input.Delimiter = aws.String("/")
	}
	out, err := d.listObjects(ctx, input)
	if err != nil {
		return storagedrivers.Page{}, mapError(ctx, err)
	}
	for _, object := range out.Contents {
		key, ok, err := d.listed(object.Key, out.EncodingType)
		if err != nil {
			return storagedrivers.Page{}, err
		}
		if !ok || storagedrivers.ValidKey(key) != nil {
			continue
		}
		page.Objects = append(page.Objects, storagedrivers.Info{
			Key:         key,
			Size:        aws.ToInt64(object.Size),
			ModTime:     aws.ToTime(object.LastModified),
			ETag:        strong(object.ETag),
			ContentType: storagedrivers.ContentType(key),
		})
	}
	for _, common := range out.CommonPrefixes {
		folder, ok, err := d.listed(common.Prefix, out.EncodingType)
		if err != nil {
			return storagedrivers.Page{}, err
		}
		if ok {
			page.TakeFolder(folder)
		}
	}
	if !aws.ToBool(out.IsTruncated) {
		return page.End(""), nil
	}
	return page.End(aws.ToString(out.NextContinuationToken)), nil
}

// listed returns the key, or the beginning of keys, for a name in a listing, and whether the name
// belongs to the driver.
func (d *driver) listed(name *string, encoding types.EncodingType) (key string, ok bool, err error) {
	plain, err := decoded(name, encoding)
	if err != nil {
		return "", false, err
	}
	key, ok = strings.CutPrefix(plain, d.prefix)
	return key, ok, nil
}

// decoded returns a decoded name of a listing.
func decoded(name *string, encoding types.EncodingType) (string, error) {
	plain := aws.ToString(name)
	if encoding != types.EncodingTypeUrl {
		return plain, nil
	}
	plain, err := url.QueryUnescape(plain)
	if err != nil {
		return "", fmt.Errorf("the listing has the name %q: %w", aws.ToString(name), err)
	}
	return plain, nil
}
