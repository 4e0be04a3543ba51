package api

import (
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/modules"
	"github.com/caddymedia/media/storagedrivers"
)

// descriptionOf returns the description of the driver called name.
func descriptionOf(t *testing.T, name string) storagedrivers.Description {
	t.Helper()
	info, err := caddy.GetModule("media.storages." + name)
	if err != nil {
		t.Fatal(err)
	}
	return info.New().(*modules.Driver).Describe()
}

func TestGuarantees(t *testing.T) {
	t.Parallel()
	none := guarantees(storagedrivers.Features{})
	all := guarantees(storagedrivers.Features{Create: storagedrivers.Atomic, Replace: storagedrivers.Atomic, Together: storagedrivers.Atomic})
	for i, name := range []string{"create", "replace", "restore"} {
		if none[i].Name != name || all[i].Name != name || none[i].Holds || !all[i].Holds ||
			none[i].Text == all[i].Text || none[i].Text == "" || all[i].Text == "" {
			t.Errorf("%+v, %+v", none[i], all[i])
		}
	}
}

// probed returns the answer to a probe of a storage that is not saved.
func probed(t *testing.T, driver map[string]any) (probeAnswer, string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"driver": driver})
	if err != nil {
		t.Fatal(err)
	}
	w := ask(t, New(), http.MethodPost, "/probe", string(body))
	return decoded[probeAnswer](t, w, http.StatusOK), w.Body.String()
}

// TestRealDrivers: errors of real drivers are explained, without the password.
func TestRealDrivers(t *testing.T) {
	root := load(t, oneFolder)
	files(t, root, "a-file")
	address, hostKey := sshServer(t, root)
	_, otherKey := sshServer(t, root)
	hangsUp := listen(t, func(net.Conn) {})
	silent := listen(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	const password = "not-the-password"
	sftp := func(change map[string]any) map[string]any {
		driver := map[string]any{
			"name": "sftp", "address": address, "user": "media", "password": "a secret", "host_key": []string{hostKey},
			"root": "objects", "timeout": "1s",
		}
		maps.Copy(driver, change)
		return driver
	}
	s3 := func(status int, code string) map[string]any {
		return map[string]any{
			"name": "s3", "bucket": "media", "endpoint": bucketServer(t, status, code),
			"access_key_id": "AKIDEXAMPLE", "secret_access_key": password, "timeout": "1s",
		}
	}
	for name, c := range map[string]struct {
		driver map[string]any
		want   string // empty: all goes well
	}{
		"all is well":       {sftp(nil), ""},
		"wrong password":    {sftp(map[string]any{"password": password}), "The host refused the login: the user or the password is wrong"},
		"wrong host key":    {sftp(map[string]any{"host_key": []string{otherKey}}), "The host shows a key that is not the expected one"},
		"wrong fingerprint": {sftp(map[string]any{"host_key": []string{"SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}), "The host shows a key that is not the expected one"},
		"refused":           {sftp(map[string]any{"address": "127.0.0.1:1"}), "The host refused the connection"},
		"unknown name":      {sftp(map[string]any{"address": "host.invalid"}), "The name of the host is unknown"},
		"silent":            {sftp(map[string]any{"address": silent}), "The host does not answer"},
		"hangs up":          {sftp(map[string]any{"address": hangsUp}), "The host ended the connection"},
		"root is a file":    {sftp(map[string]any{"root": filepath.Join(root, "a-file")}), "The root is not a folder"},
		"root below a file": {sftp(map[string]any{"root": filepath.Join(root, "a-file", "x")}), "The root is not a folder"},

		"local":            {map[string]any{"name": "local", "root": filepath.Join(root, "new")}, ""},
		"local, a file":    {map[string]any{"name": "local", "root": filepath.Join(root, "a-file")}, "The root is not a folder"},
		"local, below":     {map[string]any{"name": "local", "root": filepath.Join(root, "a-file", "x")}, "The root is not a folder"},
		"ftp login":        {map[string]any{"name": "ftp", "address": listen(t, ftpServer), "user": "x", "password": password, "timeout": "1s"}, "The host refused the login"},
		"ftp refused":      {map[string]any{"name": "ftp", "address": "127.0.0.1:1", "user": "x", "password": password}, "The host refused the connection"},
		"ftp silent":       {map[string]any{"name": "ftp", "address": silent, "user": "x", "password": password, "timeout": "1s"}, "The host does not answer"},
		"missing bucket":   {s3(404, "NoSuchBucket"), "The bucket does not exist"},
		"wrong access key": {s3(403, "InvalidAccessKeyId"), "The service refused the login"},
		"missing right":    {s3(403, "AccessDenied"), "may not use the bucket"},
		"full":             {map[string]any{"name": "foreign", "fault": "full"}, "full"},
		"missing container": {map[string]any{
			"name": "azblob", "account": "media", "key": "bm90LXRoZS1wYXNzd29yZA==", "container": "media",
			"endpoint": azureServer(t, 404, "ContainerNotFound"), "timeout": "1s",
		}, "The container does not exist"},
		"wrong account key": {map[string]any{
			"name": "azblob", "account": "media", "key": "bm90LXRoZS1wYXNzd29yZA==", "container": "media",
			"endpoint": azureServer(t, 403, "AuthenticationFailed"), "timeout": "1s",
		}, "the account or its key is wrong"},
		"missing bucket of Google": {map[string]any{"name": "gcs", "bucket": "media", "endpoint": googleServer(t, 404), "timeout": "1s"}, "The bucket does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			got, body := probed(t, c.driver)
			if c.want == "" {
				if !got.OK || len(got.Steps) != 9 || len(got.Guarantees) != 3 || got.Steps[0].Message != "" {
					t.Errorf("%s", body)
				}
				return
			}
			if got.OK || len(got.Steps) != 1 || len(got.Guarantees) != 0 || !strings.Contains(got.Steps[0].Message, c.want) ||
				got.Steps[0].Detail == "" {
				t.Errorf("want %q: %s", c.want, body)
			}
			if strings.Contains(body, password) || strings.Contains(body, "a secret") {
				t.Errorf("the password is in %s", body)
			}
		})
	}
}
