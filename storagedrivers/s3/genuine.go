package s3

import (
	"context"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/storagedrivers/internal/genuine"
)

// s3Service recognizes the replies of S3 services. They have no header in common, so that a reply
// without one of Amazon's must have what the operation is for: a document, an entity tag, or
// nothing.
var s3Service = genuine.Service{Name: "S3 service", Sent: func(response *http.Response) (bool, error) {
	switch request := response.Request; {
	case documentOf(request) != "":
		name := documentOf(request) // rclone and gofakes3 omit the end of some
		return genuine.IsXML(response, name, name+"Result", "Error")
	case genuine.HasHeader(response, "X-Amz-"):
		return true, nil
	case request.Method == http.MethodDelete:
		return response.StatusCode == http.StatusNoContent, nil
	}
	return response.Header.Get("ETag") != "", nil
}}

// documentOf returns the name of the document that answers a request, without "Result", or "" for
// none. A copied part has none: services that do not copy store an empty part, which has an entity
// tag.
func documentOf(request *http.Request) string {
	query := request.URL.Query()
	post := request.Method == http.MethodPost
	switch {
	case query.Has("list-type"):
		return "ListBucket"
	case query.Has("uploads") && post:
		return "InitiateMultipartUpload"
	case query.Has("uploads"):
		return "ListMultipartUploads"
	case query.Has("uploadId") && post:
		return "CompleteMultipartUpload"
	case query.Has("uploadId") && request.Method == http.MethodGet:
		return "ListParts"
	}
	return ""
}

// listObjects requests a listing. All its entries must have names, and without entries it must
// describe itself, as those of all services do.
func (d *driver) listObjects(ctx context.Context, input *awss3.ListObjectsV2Input) (*awss3.ListObjectsV2Output, error) {
	out, err := d.client.ListObjectsV2(ctx, input)
	if err != nil {
		return nil, err
	}
	named := out.Name != nil || out.KeyCount != nil || out.IsTruncated != nil ||
		len(out.Contents)+len(out.CommonPrefixes) > 0
	for _, object := range out.Contents {
		named = named && aws.ToString(object.Key) != ""
	}
	for _, folder := range out.CommonPrefixes {
		named = named && aws.ToString(folder.Prefix) != ""
	}
	if !named {
		return nil, s3Service.Foreign("a listing without names")
	}
	return out, nil
}
