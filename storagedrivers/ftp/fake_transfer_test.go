package ftp

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

// transfer runs the commands that need a data connection.
func (s *session) transfer(command, argument string) string {
	rest := s.rest
	s.rest = 0
	if s.passive == nil {
		return "425 no EPSV"
	}
	defer func() {
		s.passive.Close()
		s.passive = nil
	}()
	cut := int64(-1)
	if s.fake.cutData != nil {
		cut = s.fake.cutData(command, argument)
	}
	if command == "STOR" {
		return s.receive(argument, cut)
	}
	if command == "RETR" {
		return s.send(argument, rest, cut)
	}
	listing, ok := s.listing(command, argument)
	if !ok {
		return refusal
	}
	s.reply("150 here it comes")
	return s.give(strings.NewReader(listing), -1)
}

func (s *session) receive(argument string, cut int64) string {
	file, err := os.Create(s.local(s.virtual(argument)))
	if err != nil {
		return "553 Could not create file."
	}
	defer file.Close()
	s.reply("150 send")
	data, err := s.accept()
	if err != nil {
		return err.Error()
	}
	if !s.fake.lingers {
		defer data.Close()
	}
	var from io.Reader = data
	if cut >= 0 {
		from = io.LimitReader(data, cut)
	}
	if _, err := io.Copy(file, from); err != nil {
		return "426 broken"
	}
	if cut >= 0 {
		return "226 all here, or so" // the worst that a server can do
	}
	return "226 got it"
}

func (s *session) send(argument string, rest, cut int64) string {
	file, err := os.Open(s.local(s.virtual(argument)))
	if err != nil {
		return "550 Failed to open file."
	}
	defer file.Close()
	stat, err := file.Stat()
	if err != nil || !stat.Mode().IsRegular() {
		return "550 Failed to open file."
	}
	if _, err := file.Seek(rest, io.SeekStart); err != nil {
		return "554 no"
	}
	s.reply("150 here it comes")
	return s.give(file, cut)
}

// give sends r over the data connection.
func (s *session) give(r io.Reader, cut int64) string {
	data, err := s.accept()
	if err != nil {
		return err.Error()
	}
	defer data.Close()
	if cut >= 0 {
		r = io.LimitReader(r, cut)
	}
	_, err = io.Copy(data, r)
	if err == nil {
		err = data.Close() // before the reply
	}
	if err != nil || cut >= 0 {
		return "426 broken"
	}
	return "226 sent"
}

var errNoData = errors.New("425 no data connection")

// accept waits for the client's data connection.
func (s *session) accept() (net.Conn, error) {
	listener := s.passive.(*net.TCPListener)
	if err := listener.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return nil, err
	}
	raw, err := listener.Accept()
	if err != nil {
		return nil, errNoData
	}
	data := &tracked{Conn: raw, forget: s.fake.track(raw)}
	if s.secure {
		data.Conn = tls.Server(raw, s.fake.tls)
	}
	if s.fake.rude {
		data.end = raw.Close
	}
	return data, nil
}

// tracked is a data connection that the fake can close.
type tracked struct {
	net.Conn
	forget func()
	end    func() error // replaces Close
}

func (c *tracked) Close() error {
	defer c.forget()
	if c.end != nil {
		return c.end()
	}
	return c.Conn.Close()
}

// listing returns the lines of a folder; those of LIST are in the format of the session.
func (s *session) listing(command, argument string) (string, bool) {
	var lines bytes.Buffer
	line := func(stat os.FileInfo, name string) {
		if command == "MLSD" {
			fmt.Fprintf(&lines, "%s%s\r\n", factsOf(stat), name)
		} else {
			fmt.Fprintf(&lines, "%s\r\n", lineOf(stat, name))
		}
	}
	folder := s.virtual(argument)
	hidden := command == "MLSD"
	if command == "LIST" {
		if argument == "-a" && s.fake.plain {
			return "", true // there is no such file
		}
		folder, hidden = s.folder, argument == "-a"
	}
	entries, err := os.ReadDir(s.local(folder))
	if err != nil || command == "MLSD" && !s.fake.facts {
		return "", false
	}
	if stat, err := os.Stat(s.local(folder)); err == nil && hidden {
		line(stat, ".")
		line(stat, "..")
	}
	for _, entry := range entries {
		stat, err := entry.Info()
		if err == nil && (hidden || entry.Name()[0] != '.') {
			line(stat, entry.Name())
		}
	}
	return lines.String(), true
}

func factsOf(stat os.FileInfo) string {
	kind := "file"
	if stat.IsDir() {
		kind = "dir"
	}
	modified := stat.ModTime().UTC().Format("20060102150405.000")
	return fmt.Sprintf("Type=%s;Size=%d;Modify=%s; ", kind, stat.Size(), modified)
}

// lineOf returns a line of LIST.
func lineOf(stat os.FileInfo, name string) string {
	kind := "-"
	if stat.IsDir() {
		kind = "d"
	}
	when := stat.ModTime().UTC()
	stamp := when.Format("Jan _2 15:04")
	if time.Since(when) > 180*24*time.Hour {
		stamp = when.Format("Jan _2  2006")
	}
	return fmt.Sprintf("%srw-r--r--    1 user     group    %8d %s %s", kind, stat.Size(), stamp, name)
}
