package mediahttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/httpx"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/service"
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
		return refuseForm(running, w, r, ticketEndpoint, http.StatusMethodNotAllowed, "use POST")
	}
	account, refused := h.authenticateAccount(r.Context(), running, w, r)
	if refused == nil && account.User != "" {
		refused = &refusal{http.StatusForbidden, item.Forbidden, "users get no tickets: upload with the login of the site"}
	}
	if refused == nil {
		refused = rightRefusal(account, tokens.Upload)
	}
	if refused != nil {
		return h.ticketRefused(running, w, r, refused)
	}
	form, status, message := ReadForm(w, r, h.options.Now, "kind")
	if message != "" {
		return refuseForm(running, w, r, ticketEndpoint, status, message)
	}
	ticket, lifetime, refused := h.ticketOf(running, account, form)
	if refused != nil {
		return h.ticketRefused(running, w, r, refused)
	}
	text, expires, err := running.Issuer().IssueTicket(r.Context(), account, ticket, lifetime)
	throttled, tooMany := errors.AsType[*tokens.ThrottledError](err)
	switch {
	case tooMany:
		httpx.RetryAfter(w, throttled.RetryAfter)
		return h.ticketRefused(running, w, r, &refusal{http.StatusTooManyRequests, item.Busy, "the account requests too many tickets, try again later"})
	case errors.Is(err, tokens.ErrUnavailable):
		refused := h.storeUnreachable(r.Context(), "tickets cannot be given now, try again later", err)
		return h.ticketRefused(running, w, r, refused)
	case err != nil:
		h.options.Log.Error("issuing a ticket", "error", err)
		return h.ticketRefused(running, w, r, &refusal{http.StatusInternalServerError, item.Internal, "internal error"})
	}
	// The token may have been revoked meanwhile.
	if _, refused := h.authenticateAccount(r.Context(), running, w, r); refused != nil {
		h.drop(r.Context(), running, text)
		return h.ticketRefused(running, w, r, refused)
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
		h.options.Log.Error("removing a ticket", "error", err)
	}
}

// ticketEndpoint is the name of the endpoint in metrics.
const ticketEndpoint = "ticket"

// ticketRefused responds to a request for a ticket that was not issued.
func (h *Handler) ticketRefused(running *service.Service, w http.ResponseWriter, r *http.Request, refused *refusal) error {
	result := service.TicketRefused
	switch refused.reason {
	case item.Unavailable:
		result = service.TicketUnavailable
		httpx.RetryAfter(w, time.Second)
	case item.Internal:
		result = service.TicketFailed
	default:
	}
	running.Observer().TicketIssued(r.Context(), "", result)
	return refuseForm(running, w, r, ticketEndpoint, refused.status, refused.message)
}

// ticketOf returns the ticket that a form describes, and its lifetime.
func (h *Handler) ticketOf(running *service.Service, account tokens.Account, form url.Values) (ticket tokens.Ticket, lifetime time.Duration, refused *refusal) {
	fields := formFields{form: form}
	ticket = tokens.Ticket{
		Kind:      fields.text("kind", ""),
		Alias:     fields.text("alias", item.DefaultAlias),
		SubFolder: fields.text("sub_folder", ""),
		Filename:  fields.text("filename", ""),
		MaxFiles:  int(fields.number("max_files", 1, tokens.MaxTicketFiles)),
		MaxSize:   fields.number("max_size", 0, maxTicketSize),
	}
	seconds := fields.number("expires_in", int64(defaultTicketLifetime/time.Second), int64(maxTicketLifetime/time.Second))
	if fields.problem != "" {
		return ticket, 0, badTicket(fields.problem)
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
		return ticket, 0, &refusal{http.StatusForbidden, item.Forbidden, fmt.Sprintf("the account may not use the alias %.64q", ticket.Alias)}
	}
	if failure := service.ForcedBy(tokens.Caller{Ticket: &ticket}).Check(alias, h.options.Now()); failure != nil {
		return ticket, 0, badTicket(failure.Message)
	}
	return ticket, time.Duration(seconds) * time.Second, nil
}

// maxTicketSize is the largest max_size of a ticket: all integers of JSON and JavaScript.
const maxTicketSize = 1<<53 - 1

func badTicket(message string) *refusal {
	return &refusal{http.StatusBadRequest, item.BadRequest, message}
}

// formFields reads optional fields of a form. An empty field counts as missing.
type formFields struct {
	form    url.Values
	problem string // the first one, for the caller
}

// text returns the value of a field, fallback if it is missing.
func (f *formFields) text(name, fallback string) string {
	if len(f.form[name]) > 1 {
		f.fail("the field " + name + " is sent twice")
	}
	if value := f.form.Get(name); value != "" {
		return value
	}
	return fallback
}

// number returns the value of a field from 1 to most, fallback if it is missing.
func (f *formFields) number(name string, fallback, most int64) int64 {
	text := f.text(name, "")
	if text == "" {
		return fallback
	}
	value, err := strconv.ParseUint(text, 10, 63)
	if err != nil || value == 0 || int64(value) > most {
		f.fail(fmt.Sprintf("the field %s must be a whole number from 1 to %d", name, most))
		return fallback
	}
	return int64(value)
}

func (f *formFields) fail(problem string) {
	if f.problem == "" {
		f.problem = problem
	}
}
