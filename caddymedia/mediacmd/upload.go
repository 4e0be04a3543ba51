package mediacmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/term"

	"github.com/caddymedia/media/caddymedia/internal/imaging"
	"github.com/caddymedia/media/caddymedia/internal/naming"
)

func uploadCommand() *cobra.Command {
	var u uploading
	cmd := withOutput(&cobra.Command{
		Use:   "upload <file or folder>...",
		Short: "Upload files as a client of the service",
		Long: `Upload files as a client of the service, over its HTTP API. The command needs no
configuration. Each file is a separate request, so that a refused file does not
affect the others.

The files of a folder and of all folders below are sent to sub folders of the
alias with the same names. Hidden files and symbolic links in it are left out.

The password is read from --password-file, from $MEDIA_PASSWORD, or from the
terminal. It is exchanged for a token for this run. Nothing is stored.

With --json there is one line for each file, in the order of completion.`,
		Args: needs(1, maxArguments, "at least one <file or folder>"),
	}, u.run)
	flags := cmd.Flags()
	flags.StringVar(&u.server, "server", "", "Address of the service, such as https://media.example.com (default: $MEDIA_SERVER)")
	flags.StringVar(&u.apiKey, "api-key", "", "API key of the account (default: $MEDIA_API_KEY)")
	flags.StringVar(&u.passwordFile, "password-file", "", "File that contains the password")
	flags.StringVar(&u.alias, "alias", "", "Alias to upload to (default: content)")
	flags.StringVar(&u.subFolder, "sub-folder", "", "Folder within the alias (default: that of the storage, for example by date)")
	flags.StringVar(&u.kind, "as", "", "Kind of the files: image or file (default: by their extensions)")
	flags.IntVar(&u.parallel, "parallel", 2, "Number of files to send at a time")
	flags.BoolVar(&u.insecure, "insecure-http", false, "Allow sending the password over plain HTTP to another host")
	return cmd
}

// uploading is a run of the command.
type uploading struct {
	*output
	server, apiKey, passwordFile string
	alias, subFolder, kind       string
	insecure                     bool
	parallel                     int

	client *uploadClient
	stored atomic.Int64
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
	if err := u.connect(ctx); err != nil {
		return err
	}
	// With --json each file has its own failure.
	if _, err := u.client.validToken(ctx, ""); err != nil && !u.json {
		return err
	}
	files, leftOut := u.sources(args)
	bars := u.progress()
	defer bars.close()
	bytes, items := bars.bytes("bytes"), bars.items("files")
	var size int64
	for _, file := range files {
		size += file.size
	}
	bytes.setTotal(size)
	items.setTotal(int64(len(files)))
	var group errgroup.Group // each file has its own result
	group.SetLimit(u.parallel)
	for _, file := range files {
		group.Go(func() error {
			defer items.add(1)
			return u.one(ctx, file, &sentBytes{bar: bytes})
		})
	}
	err := group.Wait()
	bars.close()
	stored := int(u.stored.Load())
	if len(files) != 1 || files[0].file != args[0] {
		u.sayf("%d of %d files stored", stored, len(files))
	}
	if leftOut > 0 {
		u.sayf("left out: %d", leftOut)
	}
	if err == nil && stored < len(files) {
		err = errReported
	}
	return err
}

// connect checks the flags, reads the password and makes the client.
func (u *uploading) connect(ctx context.Context) error {
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
		return errors.New("--parallel must be 1 or more")
	case u.kind != "" && u.kind != "image" && u.kind != "file":
		return errors.New("--as must be image or file")
	}
	password, err := u.password(ctx, server)
	if err == nil {
		u.client = newUploadClient(server, u.apiKey, password)
	}
	return err
}

// password reads the password from a file, the environment or the terminal, in this order.
func (u *uploading) password(ctx context.Context, server *url.URL) (string, error) {
	if u.passwordFile != "" {
		raw, err := os.ReadFile(u.passwordFile)
		if err != nil {
			return "", fmt.Errorf("reading the password: %w", err)
		}
		if password := strings.TrimRight(string(raw), "\r\n"); password != "" {
			return password, nil
		}
		return "", errors.New("the password file is empty")
	}
	if password := os.Getenv("MEDIA_PASSWORD"); password != "" {
		return password, nil
	}
	fd := int(os.Stdin.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return "", errors.New("no password: set MEDIA_PASSWORD or use --password-file where there is no terminal")
	}
	answer, err := u.ask(ctx, fmt.Sprintf("Password of %s at %s: ", u.apiKey, server), func() string {
		password, _ := term.ReadPassword(fd) // without echo; an error leaves it empty
		return string(password)
	})
	fmt.Fprintln(u.err)
	switch {
	case err != nil:
		return "", errors.Join(err, term.Restore(fd, state))
	case answer == "":
		return "", errors.New("the password is empty")
	}
	return answer, nil
}

// source is a file to upload.
type source struct {
	file, subFolder string
	size            int64
	// err is why the file, or the folder of this name, could not be read; nil otherwise.
	err error
}

// sources returns the files of the command line and those in its folders, and the number of hidden
// files, symbolic links and the like that are left out of folders.
func (u *uploading) sources(args []string) (found []source, leftOut int) {
	for _, arg := range args {
		stat, err := os.Stat(arg)
		switch {
		case err != nil:
			found = append(found, source{file: arg, err: err})
		case stat.IsDir():
			leftOut += u.addFolder(arg, &found)
		case !stat.Mode().IsRegular(): // opening a pipe would wait for its writer
			found = append(found, source{file: arg, err: errors.New("it is not a regular file")})
		default:
			found = append(found, source{file: arg, subFolder: u.subFolder, size: stat.Size()})
		}
	}
	return found, leftOut
}

// addFolder adds the files in a folder and in all below, with sub folders that begin with the name of
// the folder. It returns the number of entries that are left out.
func (u *uploading) addFolder(root string, found *[]source) (leftOut int) {
	absolute, err := filepath.Abs(root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root) // the named folder itself may be a link
	}
	if err != nil {
		*found = append(*found, source{file: root, err: err})
		return 0
	}
	_ = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error { // it returns no other error
		hidden := err == nil && file != root && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			*found = append(*found, source{file: file, err: err})
		case hidden || !entry.IsDir() && !entry.Type().IsRegular():
			u.sayf("%s: left out, it is hidden or not a regular file", file)
			leftOut++
			if entry.IsDir() {
				return fs.SkipDir
			}
		case !entry.IsDir():
			below, _ := filepath.Rel(root, filepath.Dir(file)) // it is below
			subFolder := path.Join(u.subFolder, filepath.Base(absolute), filepath.ToSlash(below))
			one := source{file: file, subFolder: strings.TrimPrefix(subFolder, "/")}
			if stat, err := entry.Info(); err == nil {
				one.size = stat.Size()
			}
			*found = append(*found, one)
		}
		return nil
	})
	return leftOut
}

// one uploads a file and prints the result. It returns an error only if printing fails.
func (u *uploading) one(ctx context.Context, from source, sent *sentBytes) error {
	item, err := u.send(ctx, from, sent)
	if err == nil {
		u.stored.Add(1)
		u.sayf("%s: %s", from.file, printable(item.FullPath))
		return u.document(uploadResult{File: from.file, Success: true, uploaded: item})
	}
	sent.reset()
	if known, ok := errors.AsType[*fs.PathError](err); ok {
		err = known.Err // without the path, which is printed anyway
	}
	u.failf("%s: %v", from.file, err)
	return u.document(uploadResult{File: from.file, Status: statusOf(err), Message: err.Error()})
}

// send uploads a file.
func (u *uploading) send(ctx context.Context, from source, sent *sentBytes) (uploaded, error) {
	if ctx.Err() != nil {
		return uploaded{}, errors.New("interrupted: it was not sent")
	}
	if from.err != nil {
		return uploaded{}, from.err
	}
	file, err := os.Open(from.file)
	if err != nil {
		return uploaded{}, err
	}
	defer file.Close()
	stat, err := file.Stat()
	if err != nil {
		return uploaded{}, err
	}
	kind := u.kind
	if kind == "" && slices.Contains(imaging.Extensions(), naming.Extension(from.file)) {
		kind = "image"
	}
	item, err := u.client.upload(ctx, upload{cmp.Or(kind, "file"), u.alias, from.subFolder, file, stat.Size(), sent})
	if err != nil && ctx.Err() != nil {
		err = errors.New("interrupted: it was not stored")
		if sent.n.Load() >= stat.Size() {
			err = errors.New("interrupted: it may have been stored")
		}
	}
	return item, err
}

// sentBytes counts the bytes of a file that were sent, and shows them on a bar.
type sentBytes struct {
	bar *bar
	n   atomic.Int64
}

func (s *sentBytes) Write(p []byte) (int, error) {
	s.n.Add(int64(len(p)))
	s.bar.add(int64(len(p)))
	return len(p), nil
}

func (s *sentBytes) reset() { s.bar.add(-s.n.Swap(0)) }
