package options

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Line is an option in a block of a Caddyfile: its name, its arguments, and its own block.
type Line struct {
	Words []string
	Block []Line
}

// Caddyfile returns lines as they stand in a Caddyfile, in blocks of that depth, in the form of
// `caddy fmt`. No word may contain "{$": Caddy replaces it before it reads the words, however they
// are quoted.
func Caddyfile(depth int, lines ...Line) string {
	var out strings.Builder
	indent := strings.Repeat("\t", depth)
	for _, line := range lines {
		words := make([]string, len(line.Words))
		for i, word := range line.Words {
			words[i] = quoted(word)
		}
		text := indent + strings.Join(words, " ")
		if block := Caddyfile(depth+1, line.Block...); block != "" {
			text += " {\n" + block + indent + "}"
		}
		out.WriteString(text + "\n")
	}
	return out.String()
}

const (
	safe        = `[!$-;=-\[\]-_a-z|~\pL\pN]` // characters without a meaning of their own
	placeholder = `\{` + safe + `+\}`
)

var (
	// plain matches a word that needs no quotes.
	plain = regexp.MustCompile(`^(` + safe + `|` + placeholder + `)+$`)
	// ambiguous matches a backslash that Caddy would take for the mark of a quotation mark.
	ambiguous = regexp.MustCompile(`\\("|$)`)
)

// quoted returns a word as Caddy reads it: in quotation marks if it needs them, where only these
// are escaped, or as a heredoc. `caddy fmt` changes what is between backticks.
func quoted(word string) string {
	switch {
	case plain.MatchString(word):
		return word
	case !ambiguous.MatchString(word):
		return `"` + strings.ReplaceAll(word, `"`, `\"`) + `"`
	}
	marker := "END"
	for strings.Contains(word, marker) {
		marker += "_"
	}
	return "<<" + marker + "\n" + word + "\n" + marker
}

// Lines returns the options of config that are set, the struct or a pointer to it, as
// [Schema.Parse] reads them. The options of a group are arguments, in their order, or it has its
// first one as an argument and the others in its block. Named groups have one line each, with the
// name as its argument and the options in its block.
func (s *Schema) Lines(config any) []Line { return linesOf(s.fields, s.structOf(config)) }

// Line returns a line that begins with words and has the first option of config as an argument,
// and the others in its block, as [Schema.ParseModule] reads them.
func (s *Schema) Line(config any, words ...string) Line {
	return lineOf(s.fields, s.structOf(config), words...)
}

func lineOf(fields []field, in reflect.Value, words ...string) Line {
	if len(fields) == 0 || in.FieldByIndex(fields[0].index).Kind() != reflect.String {
		return Line{Words: words, Block: linesOf(fields, in)}
	}
	return Line{
		Words: append(words, fields[0].words(in.FieldByIndex(fields[0].index))...),
		Block: linesOf(fields[1:], in),
	}
}

func linesOf(fields []field, in reflect.Value) []Line {
	var lines []Line
	for _, f := range fields {
		value := in.FieldByIndex(f.index)
		if f.option.Type == Groups {
			for name, group := range groups(value) {
				lines = append(lines, Line{Words: []string{f.option.Line, name}, Block: linesOf(f.group, group)})
			}
			continue
		}
		if f.block && !value.IsNil() {
			lines = append(lines, lineOf(f.group, value.Elem(), f.option.Name))
			continue
		}
		words := f.words(value)
		if f.repeat {
			for _, word := range words {
				lines = append(lines, Line{Words: []string{f.option.Name, word}})
			}
			continue
		}
		if len(words) > 0 || f.group != nil && !value.IsNil() {
			lines = append(lines, Line{Words: append([]string{f.option.Name}, words...)})
		}
	}
	return lines
}

// words returns the arguments of an option, none if it is not set.
func (f field) words(value reflect.Value) []string {
	if value.IsZero() {
		return nil
	}
	switch f.option.Type {
	case textsType:
		return value.Interface().([]string) // that is what Texts are
	case Group:
		var words []string
		for _, inner := range f.group {
			words = append(words, inner.words(value.Elem().FieldByIndex(inner.index))...)
		}
		return words
	case switchType:
		return []string{onOff(reflect.Indirect(value).Bool())}
	case Size:
		return []string{size(value.Int())}
	case countType:
		return []string{strconv.FormatInt(value.Int(), 10)}
	case periodType:
		return []string{shortly(time.Duration(value.Int()))}
	default:
		if f.joined {
			return strings.Fields(value.String())
		}
		return []string{value.String()}
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// size returns a number of bytes in the largest unit of which it is a whole number.
func size(bytes int64) string {
	unit := ""
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		if bytes%1024 != 0 {
			break
		}
		bytes, unit = bytes/1024, larger
	}
	return strconv.FormatInt(bytes, 10) + unit
}
