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
	cmd := &cobra.Command{
		Use:   "upload <file>...",
		Short: "Uploads files as a client of the service",
		Long: `Uploads files as a client of the service, over its HTTP API. It needs no
configuration. Every file is a request of its own, so that one that is refused
does not undo the others.

The password comes from --password-file, from $MEDIA_PASSWORD, or from whoever
sits at the terminal. It is exchanged for a token, which is kept in Caddy's
data folder for the next time, readable by its owner only.

With --json there is one line for each file, in the order in which they are
done.`,
		Args: cobra.MinimumNArgs(1),
		RunE: run(uploadFiles),
	}
	cmd.Flags().String("server", "", "Address of the service, https://media.example.com for instance (default: $MEDIA_SERVER)")
	cmd.Flags().String("api-key", "", "API key of the account (default: $MEDIA_API_KEY)")
	cmd.Flags().String("password-file", "", "File that holds the password")
	cmd.Flags().String("alias", "", "Alias to upload to (default: content)")
	cmd.Flags().String("sub-folder", "", "Folder within the alias (default: as the storage has it, by date for instance)")
	cmd.Flags().String("as", "", "What the files are: image or file (default: by their extensions)")
	cmd.Flags().Int("parallel", 2, "How many files are sent at a time")
	cmd.Flags().Bool("insecure-http", false, "Send the password over plain HTTP to another host")
	addOutputFlags(cmd)
	return cmd
}

// uploading is a run of the command.
type uploading struct {
	*output
	client *uploadClient
	each   upload // what holds for every file

	parallel int
	stored   atomic.Int64
	sent     *bar
	files    *bar
}

// uploadResult is what becomes of a file, as JSON.
type uploadResult struct {
	File    string `json:"file"`
	Success bool   `json:"success"`
	uploaded
	// Status is that of the HTTP answer that refuses the file, if there was one.
	Status  int    `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
}

func uploadFiles(ctx context.Context, cmd *cobra.Command, files []string) error {
	u := &uploading{output: newOutput(cmd)}
	bars := &progress{out: u.output} // none before the password is known
	if err := u.read(cmd, func() { bars.close() }); err != nil {
		return err
	}
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
	if len(files) > 1 {
		u.sayf("%d of %d files stored", stored, len(files))
	}
	if err == nil && stored < len(files) {
		err = errReported
	}
	return err
}

// read takes the flags and the environment. beforeAsking is called before somebody is asked
// for the password.
func (u *uploading) read(cmd *cobra.Command, beforeAsking func()) error {
	flags := map[string]string{}
	for name, variable := range map[string]string{
		"server": "MEDIA_SERVER", "api-key": "MEDIA_API_KEY", "password-file": "", "alias": "", "sub-folder": "", "as": "",
	} {
		value, err := cmd.Flags().GetString(name)
		if err != nil {
			return err
		}
		if variable != "" {
			if value = cmp.Or(value, os.Getenv(variable)); value == "" {
				return fmt.Errorf("--%s or $%s is missing", name, variable)
			}
		}
		flags[name] = value
	}
	insecure, err := cmd.Flags().GetBool("insecure-http")
	if err != nil {
		return err
	}
	server, err := serverAddress(flags["server"], insecure)
	if err != nil {
		return err
	}
	if u.parallel, err = cmd.Flags().GetInt("parallel"); err != nil {
		return err
	}
	switch {
	case u.parallel < 1:
		return errors.New("--parallel is 1 or more")
	case flags["as"] != "" && flags["as"] != "image" && flags["as"] != "file":
		return errors.New("--as is image or file")
	}
	password := &passwordSource{
		file: flags["password-file"], terminal: os.Stdin, prompt: u.err, before: beforeAsking,
		question: fmt.Sprintf("Password of %s at %s: ", flags["api-key"], server),
	}
	u.client = newUploadClient(server, flags["api-key"], password.get)
	u.each = upload{Kind: flags["as"], Alias: flags["alias"], SubFolder: flags["sub-folder"]}
	return nil
}

// sizeOf gives the bytes of files together, as far as they can be seen.
func sizeOf(files []string) int64 {
	var size int64
	for _, file := range files {
		if stat, err := os.Stat(file); err == nil && stat.Mode().IsRegular() {
			size += stat.Size()
		}
	}
	return size
}

// one uploads a file and says what became of it.
func (u *uploading) one(ctx context.Context, file string) error {
	if ctx.Err() != nil {
		return u.fail(file, errors.New("interrupted before it was sent"))
	}
	job := u.each
	job.File, job.Kind, job.Sent = file, cmp.Or(job.Kind, kindOf(file)), u.sent.add
	item, err := u.client.upload(ctx, job)
	if err != nil && ctx.Err() != nil {
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

// fail says why a file was not stored. The error is that of saying so.
func (u *uploading) fail(file string, err error) error {
	u.failf("%s: %v", file, err)
	result := uploadResult{File: file, Message: err.Error()}
	if refused, ok := errors.AsType[*refusedError](err); ok {
		result.Status = refused.status
	}
	return u.document(result)
}

// failAll says why nothing can be uploaded.
func (u *uploading) failAll(files []string, err error) error {
	if !u.json {
		return err
	}
	for _, file := range files {
		if err := u.fail(file, err); err != nil {
			return err
		}
	}
	return errReported
}
