package mediacmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

func uploadCommand() *cobra.Command {
	var u uploading
	cmd := withOutput(&cobra.Command{
		Use:   "upload <file or folder>...",
		Short: "Uploads files as a client of the service",
		Long: `Uploads files as a client of the service, over its HTTP API. It needs no
configuration. Every file is a request of its own, so that one that is refused
does not undo the others.

Of a folder, the files in it and in all folders below are sent, to sub folders
of the alias with the same names. Hidden files and symbolic links in it are left
out.

The password comes from --password-file, from $MEDIA_PASSWORD, or from the
terminal. It is exchanged for a token, which is kept for the next run.

Files from 16 MiB are sent by resumable uploads if the service has them: a cut
connection is continued, and after an interruption the next run of the same
command continues, unless --no-resume is given.

Tokens and the addresses of unfinished uploads are in media/upload_tokens and
media/upload_states in Caddy's data folder, readable by their owner only.

With --json there is one line for each file, in the order in which they are
done.`,
		Args: needs(1, maxArguments, "at least one <file or folder>"),
	}, u.run)
	flags := cmd.Flags()
	flags.StringVar(&u.server, "server", "", "Address of the service, https://media.example.com for instance (default: $MEDIA_SERVER)")
	flags.StringVar(&u.apiKey, "api-key", "", "API key of the account (default: $MEDIA_API_KEY)")
	flags.StringVar(&u.passwordFile, "password-file", "", "File that holds the password")
	flags.StringVar(&u.each.Alias, "alias", "", "Alias to upload to (default: content)")
	flags.StringVar(&u.each.SubFolder, "sub-folder", "", "Folder within the alias (default: as the storage has it, by date for instance)")
	flags.StringVar(&u.each.Kind, "as", "", "The kind of the files: image or file (default: by their extensions)")
	flags.IntVar(&u.parallel, "parallel", 2, "How many files are sent at a time")
	flags.BoolVar(&u.noResume, "no-resume", false, "Send every file in one request")
	flags.BoolVar(&u.insecure, "insecure-http", false, "Send the password over plain HTTP to another host")
	return cmd
}

// uploading is a run of the command.
type uploading struct {
	*output
	server, apiKey, passwordFile string
	insecure, noResume           bool
	parallel                     int
	each                         upload // without a file

	folders bool // folders are among the arguments
	left    leftOut

	client *uploadClient
	stored atomic.Int64
	sent   *bar
	files  *bar
}

// uploadResult is the result of a file, as JSON.
type uploadResult struct {
	File    string `json:"file"`
	Success bool   `json:"success"`
	uploaded
	// Status is that of the HTTP answer that refuses the file, if there was one.
	Status  int    `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
}

// run runs `caddy media upload`.
func (u *uploading) run(ctx context.Context, o *output, args []string) error {
	u.output = o
	bars := &progress{out: o} // none before the password is known
	if err := u.connect(func() { bars.close() }); err != nil {
		return err
	}
	files := u.sources(args)
	if _, err := u.client.currentToken(ctx); err != nil {
		if ctx.Err() != nil {
			err = errInterrupted
		}
		return u.failAll(files, err)
	}
	bars = u.progress()
	defer bars.close()
	u.sent, u.files = bars.bytes("bytes"), bars.items("files")
	u.sent.setTotal(sizeOf(files))
	u.files.setTotal(int64(len(files)))
	var group errgroup.Group // each file has its own result
	group.SetLimit(u.parallel)
	for _, file := range files {
		group.Go(func() error { return u.one(ctx, file) })
	}
	err := group.Wait()
	bars.close()
	stored := int(u.stored.Load())
	if len(files) > 1 || u.folders {
		u.sayf("%d of %d files stored", stored, len(files))
	}
	if left := u.left.String(); left != "" {
		u.sayf("left out: %s", left)
	}
	if err == nil && stored < len(files) {
		err = errReported
	}
	return err
}

// connect checks the flags and makes the client. beforeAsking is called before the user is asked for the
// password.
func (u *uploading) connect(beforeAsking func()) error {
	for _, required := range []struct {
		value          *string
		flag, variable string
	}{{&u.server, "server", "MEDIA_SERVER"}, {&u.apiKey, "api-key", "MEDIA_API_KEY"}} {
		if *required.value = cmp.Or(*required.value, os.Getenv(required.variable)); *required.value == "" {
			return fmt.Errorf("--%s or $%s is missing", required.flag, required.variable)
		}
	}
	server, err := serverAddress(u.server, u.insecure)
	switch {
	case err != nil:
		return err
	case u.parallel < 1:
		return errors.New("--parallel is 1 or more")
	case u.each.Kind != "" && u.each.Kind != "image" && u.each.Kind != "file":
		return errors.New("--as is image or file")
	}
	password := &passwordSource{
		file: u.passwordFile, terminal: os.Stdin, prompt: u.err, before: beforeAsking,
		question: fmt.Sprintf("Password of %s at %s: ", u.apiKey, server),
	}
	u.client = newUploadClient(server, u.apiKey, password.get)
	if u.noResume {
		u.client.resumeFrom = 0
	}
	u.client.states.clean(u.client.now())
	return nil
}

// sizeOf returns the total size of the regular files.
func sizeOf(files []source) int64 {
	var size int64
	for _, file := range files {
		if stat, err := os.Stat(file.file); err == nil && stat.Mode().IsRegular() {
			size += stat.Size()
		}
	}
	return size
}

// one uploads a file and prints the result.
func (u *uploading) one(ctx context.Context, from source) error {
	file := from.file
	if ctx.Err() != nil {
		return u.fail(file, errors.New("interrupted before it was sent"))
	}
	if from.err != nil {
		return u.fail(file, from.err)
	}
	job := u.each
	job.File, job.SubFolder = file, from.subFolder
	job.Kind, job.Sent = cmp.Or(job.Kind, kindOf(file)), u.sent.add
	item, err := u.client.upload(ctx, job)
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(err, errContinues):
		err = fmt.Errorf("interrupted: %w", errContinues)
	case err != nil && ctx.Err() != nil:
		err = errors.New("interrupted: it may have been stored")
	}
	if err != nil {
		return u.fail(file, err)
	}
	u.stored.Add(1)
	u.files.add(1)
	u.sayf("%s: %s", file, item.FullPath)
	return u.document(uploadResult{File: file, Success: true, uploaded: item})
}

// fail prints why a file was not stored. It returns an error only if printing fails.
func (u *uploading) fail(file string, err error) error {
	u.failf("%s: %v", file, err)
	result := uploadResult{File: file, Message: err.Error()}
	if refused, ok := errors.AsType[*refusedError](err); ok {
		result.Status = refused.status
	}
	return u.document(result)
}

// failAll reports an error that prevents all uploads.
func (u *uploading) failAll(files []source, err error) error {
	if !u.json {
		return err
	}
	for _, file := range files {
		if err := u.fail(file.file, err); err != nil {
			return err
		}
	}
	return errReported
}
