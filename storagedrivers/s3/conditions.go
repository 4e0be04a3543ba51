package s3

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"time"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/lostreply"
)

// conditions describe the support of a service for If-None-Match and If-Match.
type conditions struct {
	accepted bool // it may be sent
	kept     bool // and is heeded, by the completion of an upload in parts too
	compared bool // If-Match is heeded, by all that and by deletions
}

// probePrefix is the prefix of the keys of experiments. No valid key begins with a dot.
const probePrefix = ".media-probe-"

// unanswered is an experiment without a response of the service.
type unanswered struct {
	at  time.Time
	err error
}

// knownConditions returns the support of the service for conditions. If it is unknown, an
// experiment determines it. Callers that wait for an experiment share its failure: with a silent
// service their own ones would take as long again.
func (d *driver) knownConditions(ctx context.Context) (conditions, error) {
	if known := d.conditions.Load(); known != nil {
		return *known, nil
	}
	asked := d.now()
	release, err := d.locks.Lock(ctx, "") // which is no key
	if err != nil {
		return conditions{}, err
	}
	defer release()
	if known := d.conditions.Load(); known != nil {
		return *known, nil
	}
	if last := d.unanswered.Load(); last != nil && last.at.After(asked) {
		return conditions{}, last.err
	}
	found, err := d.experiment(ctx)
	if errors.Is(err, storagedrivers.ErrUnavailable) {
		d.unanswered.Store(&unanswered{d.now(), err})
	}
	if err != nil {
		return conditions{}, err
	}
	d.conditions.Store(&found)
	return found, nil
}

// experiment tries to create its own hidden key twice. The second attempts are a whole object and
// one in parts.
func (d *driver) experiment(ctx context.Context) (conditions, error) {
	key := probePrefix + rand.Text()
	err := d.insist(ctx, key, d.probeWhole)
	defer func() { d.forget(ctx, key, err) }()
	if err != nil && !errors.Is(mapError(ctx, err), fs.ErrExist) {
		return d.refused(ctx, err)
	}
	for _, probe := range []func(context.Context, string, condition) error{d.probeWhole, d.probeParts} {
		err = d.insist(ctx, key, probe)
		if err == nil {
			d.log.WarnContext(ctx, "the service does not heed If-None-Match: "+
				"two servers that create one name at the same moment may overwrite each other",
				"bucket", d.bucket)
			return conditions{accepted: true}, nil
		}
		if !errors.Is(mapError(ctx, err), fs.ErrExist) {
			return d.refused(ctx, err)
		}
	}
	found := conditions{accepted: true, kept: true}
	found.compared, err = d.compares(ctx, key)
	return found, err
}

// errRefused means that a service refuses a condition, but not the same request without it.
var errRefused = errors.New("the service refuses conditions")

// insist sends the condition that a key is free by probe. If the service refuses it in another way
// than for an object that exists, insist tries once without it, and then again with it: the failure
// may have had another cause.
func (d *driver) insist(ctx context.Context, key string, probe func(context.Context, string, condition) error) error {
	err := probe(ctx, key, whenAbsent)
	if !odd(err) {
		return err
	}
	if err := d.probeWhole(ctx, key, condition{}); err != nil {
		return err
	}
	if err = probe(ctx, key, whenAbsent); odd(err) {
		return errRefused
	}
	return err
}

// odd reports whether an answer to a request with a condition may be a refusal of the condition.
func odd(err error) bool {
	switch status(err) {
	case 0, http.StatusPreconditionFailed, http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return false
	}
	return code(err) != "PreconditionFailed"
}

// compares tries to replace and remove the object of an experiment on condition of another entity
// tag. In the end it removes the object on condition of its own one, which a service may never
// accept.
func (d *driver) compares(ctx context.Context, key string) (bool, error) {
	other := `"00000000000000000000000000000000"`
	for _, probe := range []func(context.Context, string, condition) error{d.probeWhole, d.probeParts, d.deleteOn} {
		err := probe(ctx, key, condition{match: &other})
		if status(err) != http.StatusPreconditionFailed {
			if errors.Is(mapError(ctx, err), storagedrivers.ErrUnavailable) && !odd(err) {
				return false, mapError(ctx, err)
			}
			return false, nil
		}
	}
	own, err := d.Stat(ctx, key)
	if err == nil && own.ETag != "" {
		err = mapError(ctx, d.deleteOn(ctx, key, condition{match: &own.ETag}))
	}
	if errors.Is(err, storagedrivers.ErrUnavailable) && !odd(err) {
		return false, err
	}
	return err == nil && own.ETag != "", nil
}

// refused returns the support after an experiment that failed with err. It returns no error for a
// read-only user, or for a service that does not accept conditions.
func (d *driver) refused(ctx context.Context, err error) (conditions, error) {
	switch {
	case errors.Is(err, errRefused):
		d.log.WarnContext(ctx, "the service refuses If-None-Match: "+
			"two servers that create one name at the same moment may overwrite each other", "bucket", d.bucket)
		return conditions{}, nil
	case errors.Is(mapError(ctx, err), fs.ErrPermission):
		return conditions{accepted: true}, nil
	}
	return conditions{}, mapError(ctx, err)
}

func (d *driver) probeWhole(ctx context.Context, key string, c condition) error {
	_, err := d.client.PutObject(ctx, &awss3.PutObjectInput{
		Bucket: &d.bucket, Key: d.name(key), Body: strings.NewReader("probe"), IfNoneMatch: c.noneMatch, IfMatch: c.match,
		ChecksumAlgorithm: d.algorithm,
	})
	return err
}

func (d *driver) probeParts(ctx context.Context, key string, c condition) error {
	id, err := d.beginParts(ctx, d.newUpload(key, storagedrivers.PutOptions{}))
	if err != nil {
		return err
	}
	part, err := d.sendPart(ctx, key, id, 1, []byte("probe"))
	if err == nil {
		_, err = d.client.CompleteMultipartUpload(ctx, &awss3.CompleteMultipartUploadInput{
			Bucket: &d.bucket, Key: d.name(key), UploadId: &id, IfNoneMatch: c.noneMatch, IfMatch: c.match,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{part}},
		})
	}
	if err != nil {
		d.abort(ctx, key, id, err)
	}
	return err
}

// forget removes the object of an experiment. failed is the error of the last request.
func (d *driver) forget(ctx context.Context, key string, failed error) {
	own, cancel := lostreply.Afterwards(ctx, d.timeout, failed)
	defer cancel()
	err := d.Delete(own, key, storagedrivers.DeleteOptions{})
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, storagedrivers.ErrUnavailable) {
		d.log.WarnContext(own, "a probe may have stayed in the bucket", "key", d.prefix+key, "error", err)
	}
}
