package s3api_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

func TestAttributes(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	tag := f.put(t, docs, "a.txt", "hello")
	f.put(t, docs, "empty.txt", "")
	get := func(key string, names ...types.ObjectAttributes) (*awss3.GetObjectAttributesOutput, error) {
		return f.GetObjectAttributes(t.Context(), &awss3.GetObjectAttributesInput{Bucket: aws.String(docs), Key: &key, ObjectAttributes: names})
	}
	out, err := get("a.txt", types.ObjectAttributes("").Values()...)
	if err != nil || `"`+*out.ETag+`"` != tag || *out.ObjectSize != 5 || out.StorageClass != "STANDARD" || out.LastModified == nil {
		t.Errorf("all: %+v, %v, want the tag %s", out, err, tag)
	}
	out, err = get("empty.txt", "ObjectSize")
	if err != nil || out.ObjectSize == nil || *out.ObjectSize != 0 || out.ETag != nil || out.StorageClass != "" {
		t.Errorf("size: %+v, %v", out, err)
	}
	_, err = get("a.txt", "Nothing")
	wantCode(t, "an unknown one", err, "InvalidArgument")
	_, err = get("none.txt", "ETag")
	wantCode(t, "of no object", err, "NoSuchKey")
}
