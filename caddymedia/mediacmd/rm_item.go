package mediacmd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddymedia/media/caddymedia/ingest"
)

// removeItem removes an item and its variant. The running Caddy, if the configuration is its own,
// does it: it writes its audit log, emits its events and locks the name against its uploads.
func (s *session) removeItem(ctx context.Context, alias *ingest.Alias, filename string) error {
	if s.running == "" {
		return s.App.Service().Uploader().Delete(ctx, alias, filename, ingest.Actor{Origin: ingest.OriginAdmin})
	}
	address := url.URL{Path: "/media/items/" + string(alias.Kind) + "/" + alias.Name + "/" + filename}
	resp, err := caddycmd.AdminAPIRequest(s.running, http.MethodDelete, address.EscapedPath(),
		http.Header{"Connection": {"close"}}, nil) // or each request leaves a connection open
	if err != nil {
		return fmt.Errorf("asking the running Caddy: %w", refusal(err))
	}
	return resp.Body.Close()
}

// refusal returns the message in an answer of the admin API, or err if there is none.
func refusal(err error) error {
	var answer struct{ Error string }
	if _, document, ok := strings.Cut(err.Error(), "{"); ok &&
		json.Unmarshal([]byte("{"+document), &answer) == nil && answer.Error != "" {
		return errors.New(answer.Error)
	}
	return err
}

// confirm asks a question on the terminal. It returns an error unless the answer is yes.
func (o *output) confirm(ctx context.Context, question string) error {
	if !isTerminal(o.in) {
		return errors.New("nothing was removed: --yes is needed where there is no terminal to ask")
	}
	fmt.Fprint(o.err, o.shown(question)+" [y/N] ")
	answers := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(o.in).ReadString('\n')
		answers <- answer
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(o.err)
		return context.Cause(ctx)
	case answer := <-answers:
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
			return errors.New("nothing was removed")
		}
		return nil
	}
}
