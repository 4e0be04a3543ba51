package azblob

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/internal/source"
)

const (
	// blockSize is the size in bytes of a block, and maxBlocks the most blocks of an object in the
	// service. Objects above 195 GiB get larger blocks.
	blockSize = 4 << 20
	maxBlocks = 50_000
	// concurrency is how many blocks of an object are sent at the same time.
	concurrency = 2
)

// sendBlocks stores a large object.
func (u *upload) sendBlocks(ctx context.Context, r io.Reader) (storagedrivers.Info, error) {
	if u.Mode == storagedrivers.CreateOnly { // the service refuses a key that is taken only at the end
		if stored, err := u.Find(ctx); !errors.Is(err, fs.ErrNotExist) {
			return stored, err
		}
	}
	ids, err := u.stageAll(ctx, r)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	return u.commitBlocks(ctx, ids)
}

// commitBlocks makes an object of staged blocks.
func (u *upload) commitBlocks(ctx context.Context, ids []string) (storagedrivers.Info, error) {
	return u.commit(ctx, func(longer context.Context) (*azcore.ETag, *time.Time, error) {
		reply, err := u.blob.CommitBlockList(longer, ids, &blockblob.CommitBlockListOptions{
			Metadata: u.metadata(), HTTPHeaders: u.headers(), AccessConditions: u.conditions(),
		})
		return reply.ETag, reply.LastModified, err
	})
}

// stageAll sends the blocks of r and returns their names in order.
func (u *upload) stageAll(ctx context.Context, r io.Reader) ([]string, error) {
	src := source.New(ctx, r)
	group, staging := guard.WithContext(ctx, concurrency)
	staging, cancel := context.WithCancel(staging)
	defer cancel()
	buffers := make(chan []byte, concurrency)
	for range concurrency {
		buffers <- nil
	}
	size := max(blockSize, (u.size+maxBlocks-1)/maxBlocks)
	if u.size >= 0 {
		size = min(size, u.size)
	}
	var ids []string
	for u.size < 0 || src.Size() < u.size {
		var buffer []byte
		select {
		case buffer = <-buffers:
		case <-staging.Done():
			return nil, cmp.Or(mapError(ctx, group.Wait()), ctx.Err())
		}
		if buffer == nil {
			buffer = make([]byte, size)
		}
		block, err := u.readBlock(src, buffer)
		if err != nil {
			cancel()
			_ = group.Wait() // the error of the source counts
			return nil, err
		}
		if len(block) == 0 {
			break
		}
		id := u.blockID(len(ids))
		ids = append(ids, id)
		group.Go(func() error {
			clean, err := u.stage(staging, id, block)
			if !clean {
				buffer = nil // a broken connection may still read it
			}
			buffers <- buffer
			return err
		})
	}
	err := mapError(ctx, group.Wait())
	if err == nil {
		u.size = src.Size()
	}
	return ids, err
}

// readBlock reads the next block to buffer. After the end of a source of unknown size it is empty.
func (u *upload) readBlock(src *source.Reader, buffer []byte) ([]byte, error) {
	if u.size >= 0 {
		block := buffer[:min(u.size-src.Size(), int64(len(buffer)))]
		return block, fill(src, block)
	}
	n, _ := io.ReadFull(src, buffer) // src has the error, if it is not the end
	return buffer[:n], src.Err()
}

// blockID returns the name of a block. All block names of an object must have the same length,
// including those of other writers' leftover blocks. This length is that of Microsoft's library.
func (u *upload) blockID(number int) string {
	var name [64]byte
	copy(name[:], fmt.Sprintf("%08d-%s", number, u.ID))
	return base64.StdEncoding.EncodeToString(name[:])
}

// stage sends a block, with retries while the service is unreachable. It reports whether the first
// attempt succeeded.
func (u *upload) stage(ctx context.Context, id string, block []byte) (bool, error) {
	return u.stageBy(ctx, func() error {
		_, err := u.blob.StageBlock(ctx, id, streaming.NopCloser(bytes.NewReader(block)), nil)
		return err
	})
}

// stageBy is stage for a block that send stages.
func (u *upload) stageBy(ctx context.Context, send func() error) (bool, error) {
	for attempt := 1; ; attempt++ {
		err := send()
		if err == nil {
			return attempt == 1, nil
		}
		// A host that was silent for the whole time-out is not waited for again.
		if attempt == attempts || network.Silent(err) ||
			!errors.Is(mapError(ctx, err), storagedrivers.ErrUnavailable) {
			return false, err
		}
		if err := pause(ctx, attempt); err != nil {
			return false, err
		}
	}
}
