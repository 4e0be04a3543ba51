package tokens

import "context"

// Revoke deletes all tokens of the account of apiKey and returns how many were valid. The account
// need not be configured any more. It is no error if it has no tokens. The account itself stays: it
// can get new tokens with its password.
//
// The error is ErrUnavailable if the store did not remove all tokens; some may be gone then.
func (i *Issuer) Revoke(ctx context.Context, apiKey string) (int, error) {
	ended, err := i.store.DeleteAccount(ctx, apiKey)
	if err != nil {
		return 0, unavailable("revoking the tokens of an account", err)
	}
	return ended, nil
}
