package storagedrivers

import "context"

// WithOwner returns a context whose operations count for owner, such as an account or the address of
// a client. A driver with a bounded number of connections must share them among the owners, so that
// none keeps another waiting for long.
func WithOwner(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// Owner returns the owner of the operations of ctx. It is empty for operations of the service itself.
func Owner(ctx context.Context) string {
	owner, _ := ctx.Value(ownerKey{}).(string)
	return owner
}

type ownerKey struct{}
