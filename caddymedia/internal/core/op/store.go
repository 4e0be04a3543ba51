package op

import (
	"context"
	"io/fs"

	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// Move is a move or a copy of an item.
type Move struct {
	From     *item.Alias
	Filename string
	// ToAlias and To are the alias and the wanted filename in it.
	ToAlias *item.Alias
	To      string
	// Copy, New, Exact and Matches are those of [upload.Transfer].
	Copy, New, Exact bool
	Matches          Matches
	BaseURL          string
	// Purge keeps what is replaced or moved away in no trash.
	Purge bool
}

// Right is what the account needs for the move, in both aliases.
func (m Move) Right() access.Right {
	if m.Copy {
		return access.Copy
	}
	return access.Move
}

// Transfer moves or copies an item; see [upload.Uploader.Transfer]. It checks the right again,
// since the request may have waited for its form for long.
func (p *Permit) Transfer(ctx context.Context, m Move) ([]upload.Item, item.Failures) {
	rights := []access.Right{m.Right()}
	if m.Purge {
		rights = append(rights, access.Purge)
	}
	transfer := upload.Transfer{
		Request: p.Request(m.ToAlias.Kind, m.ToAlias.Name, m.BaseURL, rights, m.From.Name),
		From:    m.From, Filename: m.Filename, To: m.To, Exact: m.Exact, New: m.New, Copy: m.Copy, Matches: m.Matches,
	}
	transfer.Purge = m.Purge
	failure := p.needAll(rights)
	if failure == nil {
		_, failure = p.CheckAgain(ctx, m.ToAlias.Kind, rights, m.ToAlias.Name, m.From.Name)
	}
	if failure == nil && !p.MayBeItem(m.From, m.Filename) {
		failure = item.OperationFailure("", fs.ErrNotExist)
		failure.Filename = m.Filename
	}
	if failure != nil {
		failures := item.Failures{failure}
		p.Service.Observer().Refused(ctx, transfer.Operation(), failures)
		return nil, failures
	}
	return p.Service.Uploader().Transfer(ctx, transfer)
}
