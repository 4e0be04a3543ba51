package naming

import "strings"

// Extension returns the last extension of a name in lower case without its dot, or "". Trailing
// dots and spaces do not hide it; the dot of a hidden file does not begin one.
func Extension(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.TrimLeft(strings.TrimRightFunc(name, dotOrSpace), ".")
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return ""
	}
	return strings.ToLower(name[i+1:])
}
