package ftp

import (
	"bufio"
	"errors"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// FuzzWelcome: for any first bytes of a server, reading the greeting ends with a text or an error.
func FuzzWelcome(f *testing.F) {
	for _, greeting := range []string{
		"220 ready\r\n", "220-hello\r\n220 ready\r\n", "120 soon\r\n220 ready\r\n", "421 no\r\n", "SSH-2.0-x\r\n", "", "22", "220",
		"220-never ends\r\n", "\x16\x03\x01", "999 what\r\n",
	} {
		f.Add(greeting)
	}
	f.Fuzz(func(t *testing.T, greeting string) {
		c := &control{in: bufio.NewReader(strings.NewReader(greeting))}
		text, err := c.welcome()
		if err == nil && !strings.Contains(greeting, "220") {
			t.Errorf("%q is a greeting: %q", greeting, text)
		}
		if strings.HasPrefix(greeting, "SSH-") && !errors.Is(err, errSSH) {
			t.Errorf("error %v, want %v", err, errSSH)
		}
		if errors.Is(withTLSAdvice(tlsNone, err), storagedrivers.ErrUnavailable) {
			t.Errorf("error %v blames the network", err)
		}
	})
}

// TestSaid: only the latest replies are kept.
func TestSaid(t *testing.T) {
	t.Parallel()
	var log replyLog
	for range 100 {
		log.add([]byte(strings.Repeat("220 hello\r\n", 100)))
	}
	log.add([]byte("150 Opening BINARY mode data connection for key (1234 bytes).\r\n"))
	if size := log.announcedSize(); size != 1234 || len(log.text) > replyLogBytes {
		t.Errorf("the size is %d, %d bytes are kept", size, len(log.text))
	}
	if log.reset(); log.announcedSize() != -1 {
		t.Error("a size is left")
	}
}
