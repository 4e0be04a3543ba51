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
)

// List gives one page of objects; the cursor is the service's own.
func (d *Driver) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	out, err := d.client.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{
		Bucket: &d.bucket, Prefix: d.name(opts.Prefix),
		ContinuationToken: optional(opts.Cursor),
		MaxKeys:           aws.Int32(int32(opts.PageLimit())),
		EncodingType:      types.EncodingTypeUrl, // XML cannot name everything that foreign keys hold
	})
	if err != nil {
		return storagedrivers.Page{}, mapError(ctx, err)
	}
	var page storagedrivers.Page
	for _, object := range out.Contents {
		name := aws.ToString(object.Key)
		if out.EncodingType == types.EncodingTypeUrl {
			plain, err := url.QueryUnescape(name)
			if err != nil {
				return storagedrivers.Page{}, fmt.Errorf("the listing has the name %q: %w", name, err)
			}
			name = plain
		}
		key, ok := strings.CutPrefix(name, d.prefix)
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
	if aws.ToBool(out.IsTruncated) {
		page.Next = aws.ToString(out.NextContinuationToken)
	}
	return page, nil
}
