package plugin

import (
	"cmp"
	"runtime/debug"
	"strings"
	"time"
)

const (
	modulePath = "github.com/caddymedia/media"
	caddyPath  = "github.com/caddyserver/caddy/v2"
)

// Version returns the version of this plug-in, of Caddy and of Go in this program, for logs and reports.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknownBuild
	}
	return versionOf(info)
}

const unknownBuild = "unknown build"

// versionOf returns the version in the information of a build.
func versionOf(info *debug.BuildInfo) string {
	ours, caddy := unknownBuild, "Caddy of an unknown version"
	if info.Main.Path == modulePath { // in another module, the revision would be that of the other one
		ours = cmp.Or(revision(info.Settings), published(info.Main.Version), unknownBuild)
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
	return strings.Join([]string{ours, caddy, info.GoVersion}, ", ")
}

// published returns the version of a module that was downloaded, or "".
func published(version string) string { return strings.TrimPrefix(version, "(devel)") }

// revision returns the commit of a build in a checkout, short as git shows it, with its time, or "".
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
