package tokens

import "context"

// Revoke deletes all tokens and tickets of the account of apiKey and returns how many were valid.
// The account need not be configured any more. It is no error if it has none. The account itself
// stays: it can get new tokens with its password.
//
// The error is ErrUnavailable if the store did not remove them all; some may be gone then.
func (i *Issuer) Revoke(ctx context.Context, apiKey string) (int, error) {
	ended := 0
	// The first pass may miss a ticket that is issued meanwhile for a token that the pass removes
	// later. The second one removes it. See [Issuer.IssueTicket].
	for range 2 {
		n, err := i.store.DeleteAccount(ctx, apiKey)
		if err != nil {
			return 0, unavailable("revoking the tokens of an account", err)
		}
		ended += n
	}
	return ended, nil
}
