package upload

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// Source yields the files of a request: [Form], [Single], [Body], [Staged] or a [Transfer].
type Source interface {
	// receive adds the uploads to b. An error ends the request. The failure of a single upload is
	// stored in it, so that the others are checked too.
	receive(ctx context.Context, b *batch) error
}

// Form returns the files of a multipart/form-data body.
func Form(body io.Reader, boundary string) Source { return formSource{body, boundary} }

type formSource struct {
	body     io.Reader
	boundary string
}

// Single returns one file outside of a form, submitted under name. Upload reads body to its end, or
// to one byte more than the alias accepts, and does not close it. If body fails with a *[Failure],
// Upload returns that failure.
func Single(name string, body io.Reader) Source { return singleSource{name, body, sourceFailure} }

// Body returns one file that is the whole body of an HTTP request, submitted under name. It is
// [Single] with the failures of a form.
func Body(name string, body io.Reader) Source { return singleSource{name, body, rawBodyFailure} }

type singleSource struct {
	name        string
	body        io.Reader
	readFailure func(error) *item.Failure
}

// Stage returns new staged data of the storage of an item.
type Stage func(context.Context) (storagedrivers.Staged, error)

// Stager stages bytes on a storage, that of their item. If they must be copied, it calls stage
// once, for what it copies them to.
type Stager func(ctx context.Context, storage *storagedrivers.Storage, stage Stage) (storagedrivers.Staged, error)

// StagedFile is a file outside of a form whose bytes are on a storage already.
type StagedFile struct {
	// Name under which it was submitted.
	Name string
	// SubFolder of the file; empty for that of the request.
	SubFolder string
	// Size in bytes.
	Size  int64
	Stage Stager
}

// Staged returns files outside of a form whose bytes are on a storage already.
func Staged(files ...StagedFile) Source { return stagedSource(files) }

type stagedSource []StagedFile

// receive stages the files of src.
func (b *batch) receive(ctx context.Context, src Source) error {
	return item.Traced(ctx, "media.receive", b.attributes, func(ctx context.Context) error { return src.receive(ctx, b) })
}

func (s formSource) receive(ctx context.Context, b *batch) error {
	f := newForm(s.body, s.boundary, b.uploader.Limits, b.maxSize())
	defer f.close()
	for {
		p, err := f.next()
		if err == io.EOF { //nolint:errorlint // the end is io.EOF itself; a wrapped one is a truncated body
			break
		}
		if errors.Is(err, errSkipLimit) {
			return cmp.Or(b.failed(), err)
		}
		if err != nil {
			return err
		}
		if p.file {
			err = b.addFile(ctx, p)
		} else {
			err = b.addField(f, p)
		}
		if err != nil {
			return err
		}
	}
	if len(b.uploads) == 0 {
		return item.Failf(item.BadRequest, "no file: send it in a part called files[]")
	}
	return b.importAll(ctx)
}

// receive stages the file. Its alias and sub folder are already known, so a file that would be
// refused is not read.
func (s singleSource) receive(ctx context.Context, b *batch) error {
	if _, err := b.target(); err != nil {
		return err
	}
	b.fields["alias"], b.fields["sub_folder"] = b.aliasName(), b.subFolder()
	return b.stage(ctx, &received{submitted: s.name}, s.body, s.readFailure)
}

// receive stages the files, but for those that are sure to be refused.
func (s stagedSource) receive(ctx context.Context, b *batch) error {
	alias, err := b.target()
	for _, file := range s {
		if err == nil {
			err = b.receiveStaged(ctx, file, alias)
		}
	}
	return err
}

func (b *batch) receiveStaged(ctx context.Context, file StagedFile, alias *item.Alias) (err error) {
	up := &received{submitted: file.Name, subFolder: file.SubFolder, storage: alias.Storage, size: file.Size}
	b.uploads = append(b.uploads, up)
	if limit := b.req.Forced.Limit(alias.MaxSize); file.Size > limit {
		up.failure = tooLarge(limit)
		return nil
	}
	if _, err := b.storedName(alias, up, b.folderOf(up)); err != nil {
		up.failure = asFailure(err)
		return nil
	}
	up.staged, err = b.reserveStaged(func() (storagedrivers.Staged, error) {
		return file.Stage(ctx, alias.Storage, func(ctx context.Context) (storagedrivers.Staged, error) {
			return b.stageLarge(ctx, up, alias) // a file besides that from which bytes are copied
		})
	})
	return err
}

func (b *batch) addField(f *form, p *part) error {
	value, err := f.value(p)
	if err != nil {
		return err
	}
	if isPiece(p.name, value) {
		return pieceFailure(b.req.Kind)
	}
	if p.name == urlField {
		return b.addAddress(value)
	}
	if p.name != "alias" && p.name != "sub_folder" && (p.name != "hold" || b.form.Hold == nil) {
		return nil
	}
	if _, twice := b.fields[p.name]; twice {
		return item.Failf(item.BadRequest, "the field %s is sent twice", p.name)
	}
	b.fields[p.name] = value
	switch {
	case value == "":
		return nil
	case p.name == "alias":
		_, err = b.findAlias(value)
		return err
	case p.name == "hold":
		return b.setHold()
	}
	return b.req.Forced.checkSubFolder(value)
}

// fileField matches files, files[] and files[<index>].
var fileField = regexp.MustCompile(`^files(\[[^\[\]]*\])?$`)

func (b *batch) addFile(ctx context.Context, p *part) error {
	if p.filename == "" { // browsers send this for an empty file input
		if n, err := io.CopyN(io.Discard, p.body, 1); n == 0 && errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return bodyFailure(err)
		}
		return item.Failf(item.BadRequest, "a file is sent without a name")
	}
	if b.form.NoFiles != nil {
		return b.form.NoFiles
	}
	if !fileField.MatchString(p.name) {
		return &item.Failure{
			Reason: item.BadRequest, Filename: p.filename,
			Message: "a file is sent in a part of another name than files[]",
		}
	}
	return b.stage(ctx, &received{submitted: p.filename, name: p.baseName()}, p.body, bodyFailure)
}

// stage adds an upload, of body. Until the alias is known, the data is staged on the storage of a
// likely one. readFailure maps errors of body.
func (b *batch) stage(ctx context.Context, up *received, body io.Reader, readFailure func(error) *item.Failure) error {
	b.uploads = append(b.uploads, up)
	if most := b.req.Forced.MaxFiles; most > 0 && len(b.uploads) > most {
		return item.Failf(item.Forbidden, "more files than the ticket has left: %d", most)
	}
	alias := b.likelyAlias()
	if alias == nil {
		_, err := b.findAlias(b.aliasName())
		return cmp.Or(err, error(item.Failf(item.Forbidden, "the account may use no alias")))
	}
	return b.stageFor(ctx, up, alias, body, readFailure)
}

// stageFor stages body for an added upload, on the storage of alias, which is the likely one.
func (b *batch) stageFor(
	ctx context.Context, up *received, alias *item.Alias, body io.Reader, readFailure func(error) *item.Failure,
) error {
	limit := b.maxSize()
	if b.fields["alias"] != "" {
		folder := "/" // the form may still name another one than the address
		if _, known := b.fields["sub_folder"]; known {
			folder = b.subFolder()
		}
		if _, err := b.storedName(alias, up, folder); err != nil {
			up.failure = asFailure(err) // sure to be refused, so its content is not needed
			return nil
		}
		limit = b.req.Forced.Limit(alias.MaxSize)
	}
	up.storage = alias.Storage
	if err := b.spool(ctx, up, alias, io.LimitReader(body, oneMore(limit)), readFailure); err != nil {
		return err
	}
	if up.size > limit {
		up.failure = tooLarge(limit)
		return up.discard()
	}
	return nil
}

// likelyAlias returns the alias named so far, else the default alias, else the first one by name,
// if the account may use it. It returns nil if the account may use none of them.
func (b *batch) likelyAlias() *item.Alias {
	known := b.uploader.Aliases[b.req.Kind]
	names := append([]string{b.aliasName(), item.DefaultAlias}, slices.Sorted(maps.Keys(known))...)
	for _, name := range names {
		if a := known[name]; a != nil && b.req.allows(name) {
			return a
		}
	}
	return nil
}

// maxSize returns the highest size limit of the aliases that the request may use.
func (b *batch) maxSize() int64 {
	var size int64
	for name, a := range b.uploader.Aliases[b.req.Kind] {
		if b.req.allows(name) {
			size = max(size, a.MaxSize)
		}
	}
	return b.req.Forced.Limit(size)
}

// importsAtOnce is how many addresses of a request are fetched at the same time, at most.
const importsAtOnce = 4

// Importer opens the content at an address for an alias, and proposes its name. It bounds the
// concurrent imports of an account. Errors of reading the content are *[item.Failure]s.
type Importer func(ctx context.Context, address string, alias *item.Alias) (name string, content io.ReadCloser, failure *item.Failure)

// addAddress adds the content at an address as an upload. It is fetched after the form is read,
// because then its alias is known.
func (b *batch) addAddress(address string) error {
	switch address = strings.Trim(address, " "); { // of a pasted address
	case address == "":
	case b.form.NoImports != nil:
		return b.form.NoImports
	case b.form.Import != nil:
		b.uploads = append(b.uploads, &received{submitted: address, imported: true})
	}
	return nil
}

// importAll stages the contents at the addresses of the form.
func (b *batch) importAll(ctx context.Context) error {
	imports := slices.DeleteFunc(slices.Clone(b.uploads), func(up *received) bool { return !up.imported })
	if len(imports) == 0 {
		return nil
	}
	alias, err := b.target()
	if err != nil {
		return err
	}
	b.fields["alias"], b.fields["sub_folder"] = b.aliasName(), b.subFolder()
	if b.form.ImportTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.form.ImportTime)
		defer cancel()
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	sum := &importSum{most: b.form.MaxImported, end: end}
	errs := guard.Each(len(imports), importsAtOnce, func(i int) error { return b.importOne(ctx, imports[i], alias, sum) })
	tooMuch, _ := errors.AsType[*item.Failure](context.Cause(ctx))
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
func (b *batch) importOne(ctx context.Context, up *received, alias *item.Alias, sum *importSum) error {
	name, content, failure := b.form.Import(ctx, up.submitted, alias)
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
		err = item.Failf(item.TooLarge, "the addresses of the request have more than %s together: send fewer of them at once", bytesize.Format(c.sum.most))
		c.sum.end(err)
	}
	return n, err
}

// observed returns failures for the observer. Addresses of imports have no query there, which may
// be a credential.
func (b *batch) observed(failures item.Failures) item.Failures {
	failures = slices.Clone(failures)
	for i, failure := range failures {
		if slices.ContainsFunc(b.uploads, func(up *received) bool { return up.imported && up.submitted == failure.Filename }) {
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
