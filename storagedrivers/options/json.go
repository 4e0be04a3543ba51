package options

import (
	"encoding/json"
	"fmt"
)

// CheckJSON returns an error if value is invalid for the option, which is no Group or Groups.
// Numbers in value must be [json.Number]. The error begins with name and contains nothing of the
// value.
func (o Option) CheckJSON(name string, value any) error {
	var what string
	var ok bool
	switch o.Type {
	case Texts:
		what, ok = "a list of texts", areTexts(value)
	case Switch:
		what = "true or false"
		_, ok = value.(bool)
	case Count:
		what, ok = "a whole number", isWhole(value)
	case Size:
		what, ok = "a whole number of bytes", isWhole(value)
	case Period:
		what, ok = "a duration such as 30s, 5m or 1h30m", isDuration(value)
	default:
		what = "a text"
		_, ok = value.(string)
	}
	if !ok {
		return fmt.Errorf("%s is %s", name, what)
	}
	return nil
}

func areTexts(value any) bool {
	list, ok := value.([]any)
	for _, element := range list {
		if _, isText := element.(string); !isText {
			return false
		}
	}
	return ok
}

func isWhole(value any) bool {
	number, ok := value.(json.Number)
	if !ok {
		return false
	}
	_, err := number.Int64()
	return err == nil
}

// isDuration also accepts nanoseconds, as in Caddy's own JSON.
func isDuration(value any) bool {
	text, ok := value.(string)
	if !ok {
		return isWhole(value)
	}
	_, err := ParseDuration(text)
	return err == nil
}
