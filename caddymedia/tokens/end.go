package tokens

import "context"

// End ends all tokens that the account of apiKey has by now, at once and for ever, and tells how many were valid. The
// account need not be one of this configuration any more; one that never had a token has none to end. The account
// itself stays: who knows its password gets new tokens.
//
// The error is ErrUnavailable when the store did not remove them all; some may be gone then.
func (i *Issuer) End(ctx context.Context, apiKey string) (int, error) {
	ended, err := i.store.DeleteAccount(ctx, apiKey)
	if err != nil {
		return 0, unavailable("ending the tokens of an account", err)
	}
	return ended, nil
}
