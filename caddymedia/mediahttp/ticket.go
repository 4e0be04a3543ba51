package mediahttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/tokens"
)

const (
	defaultTicketLifetime = 15 * time.Minute
	maxTicketLifetime     = 24 * time.Hour
)

type ticketAnswer struct {
	Success bool `json:"success"`
	// Ticket is opaque to the client.
	Ticket string `json:"ticket"`
	// ExpiresAt is in Unix seconds.
	ExpiresAt int64 `json:"expires_at"`
}

// issueTicket responds with a ticket for a token.
func (h *Handler) issueTicket(running *service.Service, w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return caller.RefuseForm(running, w, r, ticketEndpoint, http.StatusMethodNotAllowed, "use POST")
	}
	account, failure := h.gate.AuthenticateAccount(r.Context(), running, w, r)
	if failure == nil && account.User != "" {
		failure = item.Failf(item.Forbidden, "users get no tickets: upload with the login of the site")
	}
	if failure == nil {
		failure = op.Need(account, access.Upload)
	}
	if failure != nil {
		return h.ticketRefused(running, w, r, caller.Refused(failure))
	}
	form, status, message := caller.SmallForm.Read(w, r, h.gate.Now, "kind")
	if message != "" {
		return caller.RefuseForm(running, w, r, ticketEndpoint, status, message)
	}
	ticket, lifetime, refused := h.ticketOf(running, account, form)
	if refused != nil {
		return h.ticketRefused(running, w, r, refused)
	}
	text, expires, err := running.Issuer().IssueTicket(r.Context(), account, ticket, lifetime)
	throttled, tooMany := errors.AsType[*access.ThrottledError](err)
	switch {
	case tooMany:
		httpx.RetryAfter(w, throttled.RetryAfter)
		return h.ticketRefused(running, w, r, caller.Refuse(http.StatusTooManyRequests, item.Busy, "the account requests too many tickets, try again later"))
	case errors.Is(err, tokens.ErrUnavailable):
		failure := op.StoreUnreachable(r.Context(), h.gate.Log, "tickets cannot be given now, try again later", err)
		return h.ticketRefused(running, w, r, caller.Refused(failure))
	case err != nil:
		h.gate.Log.Error("issuing a ticket", "error", err)
		return h.ticketRefused(running, w, r, caller.Refuse(http.StatusInternalServerError, item.Internal, "internal error"))
	}
	// The token may have been revoked meanwhile.
	if _, failure := h.gate.AuthenticateAccount(r.Context(), running, w, r); failure != nil {
		h.drop(r.Context(), running, text)
		return h.ticketRefused(running, w, r, caller.Refused(failure))
	}
	running.Observer().TicketIssued(r.Context(), account.APIKey, service.TicketOK)
	return httpx.Answer(w, http.StatusOK, ticketAnswer{Success: true, Ticket: text, ExpiresAt: expires.Unix()})
}

// dropTime bounds the removal of a ticket that is not issued.
const dropTime = 10 * time.Second

// drop removes a ticket that was issued for a token that has ended.
func (h *Handler) drop(ctx context.Context, running *service.Service, text string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTime)
	defer cancel()
	if err := running.Issuer().Drop(ctx, text); err != nil {
		h.gate.Log.Error("removing a ticket", "error", err)
	}
}

// ticketEndpoint is the name of the endpoint in metrics.
const ticketEndpoint = "ticket"

// ticketRefused responds to a request for a ticket that was not issued.
func (h *Handler) ticketRefused(running *service.Service, w http.ResponseWriter, r *http.Request, refused *caller.Refusal) error {
	result := service.TicketRefused
	switch refused.Failure.Reason {
	case item.Unavailable:
		result = service.TicketUnavailable
		httpx.RetryAfter(w, time.Second)
	case item.Internal:
		result = service.TicketFailed
	default:
	}
	running.Observer().TicketIssued(r.Context(), "", result)
	return caller.RefuseForm(running, w, r, ticketEndpoint, refused.Status, refused.Failure.Message)
}

// ticketOf returns the ticket that a form describes, and its lifetime.
func (h *Handler) ticketOf(running *service.Service, account access.Account, form url.Values) (ticket access.Ticket, lifetime time.Duration, refused *caller.Refusal) {
	fields := caller.FormFields{Form: form}
	ticket = access.Ticket{
		Kind:      fields.Text("kind", ""),
		Alias:     fields.Text("alias", item.DefaultAlias),
		SubFolder: fields.Text("sub_folder", ""),
		Filename:  fields.Text("filename", ""),
		MaxFiles:  int(fields.Number("max_files", 1, access.MaxTicketFiles)),
		MaxSize:   fields.Number("max_size", 0, maxTicketSize),
	}
	if sent := fields.Text("hold", ""); sent != "" {
		var failure *item.Failure
		if ticket.Hold, failure = op.SecondsOfHold(sent); failure != nil {
			fields.Fail(failure.Message)
		} else if running.Uploads() == nil {
			fields.Fail(op.ErrNoUploads.Message)
		}
	}
	seconds := fields.Number("expires_in", int64(defaultTicketLifetime/time.Second), int64(maxTicketLifetime/time.Second))
	if fields.Problem != "" {
		return ticket, 0, badTicket(fields.Problem)
	}
	kind, known := item.KindOf(ticket.Kind)
	if !known {
		return ticket, 0, badTicket("the field kind must be image or file")
	}
	alias, known := running.Alias(kind, ticket.Alias)
	switch {
	case !known:
		return ticket, 0, badTicket(fmt.Sprintf("unknown alias %.64q", ticket.Alias))
	case !account.Allows(ticket.Alias):
		return ticket, 0, caller.Refuse(http.StatusForbidden, item.Forbidden, fmt.Sprintf("the account may not use the alias %.64q", ticket.Alias))
	}
	if failure := service.ForcedBy(access.Caller{Ticket: &ticket}).Check(alias, h.gate.Now()); failure != nil {
		return ticket, 0, badTicket(failure.Message)
	}
	return ticket, time.Duration(seconds) * time.Second, nil
}

// maxTicketSize is the largest max_size of a ticket: all integers of JSON and JavaScript.
const maxTicketSize = 1<<53 - 1

func badTicket(message string) *caller.Refusal {
	return caller.Refuse(http.StatusBadRequest, item.BadRequest, message)
}
