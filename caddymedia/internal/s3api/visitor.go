package s3api

import (
	"net/http"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/access"
	"github.com/caddymedia/media/caddymedia/internal/item"
)

// bodyGrace is how long after the end of a presigned address a body that was begun with it may arrive.
const bodyGrace = 15 * time.Minute

// ends returns the time at which a body ends that is sent to a presigned address.
func (s *signature) ends() time.Time { return s.at.Add(s.lifetime + bodyGrace) }

// admitVisitor makes the request that of a visitor if its signature is in the query. Such an address is in
// the hands of a visitor, so it counts as a ticket for one file: it shares the bounds of its account with
// others, by its signature, client and network. It returns an error if too much that was sent to the
// address was refused.
func (q *request) admitVisitor() *Error {
	if q.signature.lifetime == 0 {
		return nil
	}
	sum := strings.ToLower(q.signature.sum)
	if q.r.Method != http.MethodPut && q.r.Method != http.MethodPost {
		q.visitor = access.PresignedTicket(sum, q.signature.ends())
		return nil
	}
	var err error
	if q.visitor, err = q.running.Issuer().Presigned(q.ctx, sum, q.signature.ends()); err != nil {
		q.Log.Error("reading what was refused of a presigned address", "error", err)
		return errorOf(slowDown, "the service is busy, try again later")
	}
	if q.visitor.Left() == 0 {
		return errorOf(accessDenied, "the address has ended: too much that was sent to it was refused")
	}
	return nil
}

// actor returns the actor of the request.
func (q *request) actor() item.Actor {
	actor := item.Actor{Origin: item.OriginS3, Account: q.account.APIKey, Client: q.Client(q.r)}
	if q.visitor != nil {
		actor.Ticket = q.visitor.HexID()
	}
	return actor
}
