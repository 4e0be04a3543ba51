package plugin

import (
	"cmp"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

const (
	modulePath = "github.com/caddymedia/media"
	caddyPath  = "github.com/caddyserver/caddy/v2"
)

// Version returns the version of this plug-in, of Caddy and of Go in this program, for logs and
// reports.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknownBuild
	}
	return versionOf(info)
}

// OwnVersion returns the first part of Version: that of this plug-in.
func OwnVersion() string {
	own, _, _ := strings.Cut(Version(), separator)
	return own
}

const (
	unknownBuild = "unknown build"
	separator    = ", "
)

// versionOf returns the version in the information of a build.
func versionOf(info *debug.BuildInfo) string {
	ours, caddy := unknownBuild, "Caddy of an unknown version"
	if info.Main.Path == modulePath { // in another module, the revision would be that of the other one
		ours = cmp.Or(released(info.Main.Version), revision(info.Settings), published(info.Main.Version), unknownBuild)
	}
	for _, m := range info.Deps {
		switch {
		case m.Path == caddyPath && m.Replace == nil:
			caddy = "Caddy " + m.Version
		case m.Path == modulePath && m.Replace == nil:
			ours = m.Version
		case m.Path == modulePath && published(m.Replace.Version) != "": // not a folder
			ours = m.Replace.Path + " " + m.Replace.Version
		}
	}
	return strings.Join([]string{ours, caddy, info.GoVersion}, separator)
}

// unreleased matches a version that go build made for a commit without a tag, or for a changed
// checkout.
var unreleased = regexp.MustCompile(`[.-]\d{14}-[0-9a-f]{12}|\+dirty$`)

// released returns a version that a tag names, or "".
func released(version string) string {
	if unreleased.MatchString(version) {
		return ""
	}
	return published(version)
}

// published returns the version of a module that was downloaded, or "".
func published(version string) string { return strings.TrimPrefix(version, "(devel)") }

// revision returns the commit of a build in a checkout, short as git shows it, with its time, or
// "".
func revision(settings []debug.BuildSetting) string {
	values := map[string]string{}
	for _, s := range settings {
		values[s.Key] = s.Value
	}
	hash := values["vcs.revision"]
	if hash == "" {
		return ""
	}
	text := "commit " + hash[:min(len(hash), 12)]
	if at, err := time.Parse(time.RFC3339, values["vcs.time"]); err == nil {
		text += " of " + at.UTC().Format("2006-01-02 15:04")
	}
	if values["vcs.modified"] == "true" {
		text += " with changes"
	}
	return text
}
