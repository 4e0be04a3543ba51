package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/caddymedia/media/storagedrivers"
)

// Sweep looks for uploads in parts that were neither completed nor aborted, and for objects of
// experiments. Parts cost money and appear in no listing of objects. A running upload has a recent
// part, even if it was started long ago. Below its prefix the driver treats uploads with valid keys
// as its own.
func (d *driver) Sweep(ctx context.Context, opts storagedrivers.SweepOptions) ([]storagedrivers.Leftover, error) {
	s := &sweeper{driver: d, before: opts.Before(d.now()), dry: opts.DryRun}
	err := s.uploads(ctx)
	if err == nil {
		err = s.probes(ctx)
	}
	return s.found, errors.Join(append(s.failed, err)...)
}

// sweeper removes leftovers, or only finds them.
type sweeper struct {
	driver *driver
	before time.Time // the last write to a leftover was before
	dry    bool
	found  []storagedrivers.Leftover
	failed []error // of leftovers that could not be removed
}

// uploads sweeps all uploads in parts.
func (s *sweeper) uploads(ctx context.Context) error {
	d := s.driver
	input := &awss3.ListMultipartUploadsInput{
		Bucket: &d.bucket, Prefix: d.name(""), EncodingType: types.EncodingTypeUrl,
	}
	for {
		out, err := d.client.ListMultipartUploads(ctx, input)
		if code(err) == "NoSuchUpload" { // some services' word for none
			return nil
		}
		if err != nil {
			return mapSweepError(ctx, err)
		}
		for _, one := range out.Uploads {
			if err := s.upload(ctx, one, out.EncodingType); err != nil {
				return err
			}
		}
		if !aws.ToBool(out.IsTruncated) {
			return nil
		}
		after, err := decoded(out.NextKeyMarker, out.EncodingType)
		if err != nil {
			return err
		}
		input.KeyMarker, input.UploadIdMarker = &after, out.NextUploadIdMarker
	}
}

// upload sweeps one upload in parts if it is a leftover.
func (s *sweeper) upload(ctx context.Context, one types.MultipartUpload, encoding types.EncodingType) error {
	d := s.driver
	key, ok, err := d.listed(one.Key, encoding)
	if err != nil {
		return err
	}
	left := storagedrivers.Leftover{Name: key, ModTime: aws.ToTime(one.Initiated)}
	own := storagedrivers.ValidKey(key) == nil || strings.HasPrefix(key, probePrefix)
	if !ok || !own || !s.isOld(left) {
		return nil
	}
	parts := awss3.NewListPartsPaginator(d.client, &awss3.ListPartsInput{
		Bucket: &d.bucket, Key: d.name(key), UploadId: one.UploadId,
	})
	for parts.HasMorePages() {
		page, err := parts.NextPage(ctx)
		if code(err) == "NoSuchUpload" {
			return nil // it was completed or aborted meanwhile
		}
		if err != nil {
			return mapSweepError(ctx, err)
		}
		for _, part := range page.Parts {
			left.Size += aws.ToInt64(part.Size)
			if sent := aws.ToTime(part.LastModified); sent.After(left.ModTime) {
				left.ModTime = sent
			}
		}
	}
	if !s.isOld(left) {
		return nil
	}
	return s.take(ctx, left, func() error {
		_, err := d.client.AbortMultipartUpload(ctx, &awss3.AbortMultipartUploadInput{
			Bucket: &d.bucket, Key: d.name(key), UploadId: one.UploadId,
		}, retrying)
		if code(err) == "NoSuchUpload" {
			return nil
		}
		return err
	})
}

// probes sweeps the objects of experiments.
func (s *sweeper) probes(ctx context.Context) error {
	d := s.driver
	objects := awss3.NewListObjectsV2Paginator(d.client, &awss3.ListObjectsV2Input{
		Bucket: &d.bucket, Prefix: d.name(probePrefix), EncodingType: types.EncodingTypeUrl,
	})
	for objects.HasMorePages() {
		page, err := objects.NextPage(ctx)
		if err != nil {
			return mapError(ctx, err)
		}
		for _, object := range page.Contents {
			key, ok, err := d.listed(object.Key, page.EncodingType)
			if err != nil {
				return err
			}
			left := storagedrivers.Leftover{
				Name: key, Size: aws.ToInt64(object.Size), ModTime: aws.ToTime(object.LastModified),
			}
			if !ok || !s.isOld(left) {
				continue
			}
			if err := s.take(ctx, left, func() error { return d.Delete(ctx, key, storagedrivers.DeleteOptions{}) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// isOld reports whether a leftover is old enough. One without a time is not.
func (s *sweeper) isOld(left storagedrivers.Leftover) bool {
	return !left.ModTime.IsZero() && left.ModTime.Before(s.before)
}

// take removes a leftover, except in a dry run. It returns an error only if the sweep cannot
// continue.
func (s *sweeper) take(ctx context.Context, left storagedrivers.Leftover, remove func() error) error {
	if !s.dry {
		err := mapError(ctx, remove())
		if errors.Is(err, storagedrivers.ErrUnavailable) || ctx.Err() != nil && err != nil {
			return err
		}
		if err != nil {
			s.failed = append(s.failed, fmt.Errorf("removing what is left of %q: %w", left.Name, err))
			return nil
		}
	}
	s.found = append(s.found, left)
	return nil
}

// mapSweepError is mapError for listing uploads in parts. Some services accept such uploads but do
// not list them.
func mapSweepError(ctx context.Context, err error) error {
	switch status(err) {
	case http.StatusNotImplemented, http.StatusMethodNotAllowed:
		return fmt.Errorf("%w: the service does not list uploads in parts: %w", errors.ErrUnsupported, brief(err))
	}
	return mapError(ctx, err)
}
