package upload

import (
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/bytesize"
)

// importsAtOnce is how many addresses of a request are fetched at the same time, at most.
const importsAtOnce = 4

// Importer opens the content at an address for an alias, and proposes its name. It bounds the
// concurrent imports of an account. Errors of reading the content are *[aliases.Failure]s.
type Importer func(ctx context.Context, address string, alias *aliases.Alias) (name string, content io.ReadCloser, failure *aliases.Failure)

// addAddress adds the content at an address as an upload. It is fetched after the form is read,
// because then its alias is known.
func (b *batch) addAddress(address string) error {
	switch address = strings.Trim(address, " "); { // of a pasted address
	case address == "":
	case b.req.NoImports != nil:
		return b.req.NoImports
	case b.req.Import != nil:
		b.uploads = append(b.uploads, &upload{submitted: address, imported: true})
	}
	return nil
}

// importAll stages the contents at the addresses of the form.
func (b *batch) importAll(ctx context.Context) error {
	imports := slices.DeleteFunc(slices.Clone(b.uploads), func(up *upload) bool { return !up.imported })
	if len(imports) == 0 {
		return nil
	}
	alias, err := b.target()
	if err != nil {
		return err
	}
	b.fields["alias"], b.fields["sub_folder"] = b.aliasName(), b.subFolder()
	if b.req.ImportTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.req.ImportTime)
		defer cancel()
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	sum := &importSum{most: b.req.MaxImported, end: end}
	errs := abreast(len(imports), importsAtOnce, func(i int) error { return b.importOne(ctx, imports[i], alias, sum) })
	tooMuch, _ := errors.AsType[*aliases.Failure](context.Cause(ctx))
	for i, err := range errs {
		if err != nil && tooMuch != nil { // which has ended the others
			failure := *tooMuch
			err = &failure
		}
		if err != nil {
			imports[i].failure = asFailure(err)
			if err := imports[i].discard(); err != nil {
				b.uploader.Log.Warn("closing staged data", "error", err)
			}
		}
	}
	return nil
}

// importOne stages the content at the address of an upload.
func (b *batch) importOne(ctx context.Context, up *upload, alias *aliases.Alias, sum *importSum) error {
	name, content, failure := b.req.Import(ctx, up.submitted, alias)
	if failure != nil {
		return failure
	}
	defer b.closeSource(content)
	up.name = name
	return b.stageFor(ctx, up, alias, &countedImport{content, sum}, sourceFailure)
}

// importSum counts the bytes of all imports of a request, and ends them when there are too many.
type importSum struct {
	most  int64 // 0 means no limit
	bytes atomic.Int64
	end   context.CancelCauseFunc
}

// countedImport is the content of an import.
type countedImport struct {
	io.Reader
	sum *importSum
}

func (c *countedImport) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if bytes := c.sum.bytes.Add(int64(n)); c.sum.most > 0 && bytes > c.sum.most {
		err = aliases.Failf(aliases.TooLarge, "the addresses of the request have more than %s together: send fewer of them at once", bytesize.Format(c.sum.most))
		c.sum.end(err)
	}
	return n, err
}

// observed returns failures for the observer. Addresses of imports have no query there, which may
// be a credential.
func (b *batch) observed(failures aliases.Failures) aliases.Failures {
	failures = slices.Clone(failures)
	for i, failure := range failures {
		if slices.ContainsFunc(b.uploads, func(up *upload) bool { return up.imported && up.submitted == failure.Filename }) {
			plain := *failure
			plain.Filename = withoutQuery(failure.Filename)
			failures[i] = &plain
		}
	}
	return failures
}

// withoutQuery returns an address without its query, fragment and credentials; empty if it is
// malformed.
func withoutQuery(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
