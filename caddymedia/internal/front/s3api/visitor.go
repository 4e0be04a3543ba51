package s3api

import (
	"net/http"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
)

// bodyGrace is how long after the end of a presigned address a body that was begun with it may
// arrive.
const bodyGrace = 15 * time.Minute

// ends returns the time at which a body ends that is sent to a presigned address.
func (s *signature) ends() time.Time { return s.at.Add(s.lifetime + bodyGrace) }

// ticket returns the ticket that a presigned address is; nil for a signature in the header. Such an
// address is in the hands of a visitor, so it counts as a ticket for one file: it shares the bounds
// of its account with others, by its signature, client and network.
func (q *request) ticket() *access.Ticket {
	if q.signature.lifetime == 0 {
		return nil
	}
	ticket := access.PresignedTicket(strings.ToLower(q.signature.sum), q.signature.ends())
	ticket.Kind, ticket.Alias, _ = strings.Cut(q.bucket, "-")
	return ticket
}

// admitVisitor returns an error if too much that was sent to a presigned address was refused.
func (q *request) admitVisitor() *Error {
	ticket := q.permit.Ticket
	if ticket == nil || q.r.Method != http.MethodPut && q.r.Method != http.MethodPost {
		return nil
	}
	if err := q.running.Issuer().LoadPresigned(q.ctx, ticket); err != nil {
		q.Log.Error("reading what was refused of a presigned address", "error", err)
		return errorOf(slowDown, "the service is busy, try again later")
	}
	if q.permit.UsedUp() {
		return errorOf(accessDenied, "the address has ended: too much that was sent to it was refused")
	}
	return nil
}
