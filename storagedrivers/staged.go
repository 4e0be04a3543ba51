package storagedrivers

// staged is the Staged of [Storage.Stage]: that of the driver or the spool, with the checks of
// every storage. It keeps the storage open until it is closed.
type staged struct {
	storage *Storage
	inner   Staged
	size    int64
}

func (st *staged) Write(p []byte) (int, error) {
	n, err := st.inner.Write(p)
	st.size += int64(n)
	return n, st.storage.wrap("stage", "", err)
}

// Read must return io.EOF unwrapped.
func (st *staged) Read(p []byte) (int, error) { return st.inner.Read(p) }

func (st *staged) Seek(offset int64, whence int) (int64, error) {
	return st.inner.Seek(offset, whence)
}

func (st *staged) Close() error {
	err := st.inner.Close()
	if closeErr := st.storage.references.Release(); err == nil {
		err = closeErr
	}
	return st.storage.wrap("stage", "", err)
}
