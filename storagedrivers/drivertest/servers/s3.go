package servers

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pkg/xattr"
)

// S3 is an S3 service with one account.
type S3 struct {
	*Process
	// AccessKeyID and SecretAccessKey are those of the account, which has all rights.
	AccessKeyID, SecretAccessKey string
	// Objects is the folder with a folder for each bucket.
	Objects string
}

// VersityGW starts versitygw, which checks signatures and stores objects as files in a new folder.
func VersityGW(t testing.TB) *S3 {
	t.Helper()
	program := Program(t, "versitygw")
	folder := Folder(t)
	address := FreeAddress(t)
	account := S3{AccessKeyID: "media-test", SecretAccessKey: "media-test-secret", Objects: filepath.Join(folder, "objects")}
	args := []string{
		"--quiet", "--access", account.AccessKeyID, "--secret", account.SecretAccessKey, "--port", address,
		// Its unnamed temporary files cannot replace an object whose name is nearly as long as the
		// file system allows.
		"posix", "--disableotmp",
	}
	args = append(args, metadataOf(t, folder)...)
	account.Process = Start(t, address, func() *exec.Cmd {
		return exec.Command(program, append(args, account.Objects)...)
	})
	return &account
}

// metadataOf creates the folder for objects and returns the arguments for the storage of metadata:
// beside the objects if the file system has no extended attributes.
func metadataOf(t testing.TB, folder string) []string {
	t.Helper()
	objects, beside := filepath.Join(folder, "objects"), filepath.Join(folder, "metadata")
	for _, path := range []string{objects, beside} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := xattr.Set(objects, "user.media-test", []byte("x")); err == nil {
		return nil
	}
	return []string{"--sidecar", beside}
}
